"""Alerts, as values that compare equal while nothing changed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from orders.machine import AlertState
from orders.models import Alert

MOST_OPEN = 100
MOST_RESOLVED = 50


@dataclass(frozen=True, slots=True)
class AlertRow:
    pk: int
    kind: str
    severity: str
    state: str
    message: str
    remedy: str
    times: int
    raised_at: datetime
    last_raised_at: datetime
    acknowledged_at: datetime | None
    acknowledged_by: str
    note: str
    resolved_at: datetime | None
    resolved_by: str
    account: str
    symbol: str  # "" where it is not about one market
    client_order_id: str  # "" where it is not about one order

    @property
    def key(self) -> str:
        return f"alert-{self.pk}"

    @property
    def open(self) -> bool:
        return self.state == AlertState.OPEN

    @property
    def title(self) -> str:
        return self.kind.replace("_", " ")


def unresolved(market_id: int | None = None) -> list[AlertRow]:
    """Open ones first, the worst first, then the oldest; of one market or of all."""
    alerts = _alerts().exclude(state=AlertState.RESOLVED)
    if market_id is not None:
        alerts = alerts.filter(market_id=market_id)
    rows = [_row(alert) for alert in alerts.order_by("pk")[:MOST_OPEN]]
    return sorted(rows, key=lambda row: (not row.open, Alert.SEVERITIES.index(row.severity)))


def resolved() -> list[AlertRow]:
    """The newest first."""
    alerts = _alerts().filter(state=AlertState.RESOLVED).order_by("-pk")
    return [_row(alert) for alert in alerts[:MOST_RESOLVED]]


def find(alert_id: int) -> AlertRow | None:
    alert = _alerts().filter(pk=alert_id).first()
    return _row(alert) if alert else None


def _alerts() -> QuerySet[Alert]:
    return Alert.objects.select_related("account", "market__account", "intent__account")


def _row(alert: Alert) -> AlertRow:
    return AlertRow(
        pk=alert.pk,
        kind=alert.kind,
        severity=alert.severity,
        state=alert.state,
        message=alert.message,
        remedy=alert.remedy,
        times=alert.times,
        raised_at=alert.raised_at,
        last_raised_at=alert.last_raised_at,
        acknowledged_at=alert.acknowledged_at,
        acknowledged_by=alert.acknowledged_by,
        note=alert.note,
        resolved_at=alert.resolved_at,
        resolved_by=alert.resolved_by,
        account=_account(alert),
        symbol=alert.market.symbol if alert.market else "",
        client_order_id=alert.intent.client_order_id if alert.intent else "",
    )


def _account(alert: Alert) -> str:
    """Of the alert, or of what it is about; "" for an alert of the whole desk."""
    for part in (alert, alert.market, alert.intent):
        if part is not None and part.account is not None:
            return part.account.name
    return ""
