"""Alerts: raised once per topic, acknowledged by people, resolved by facts or by people."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from orders.journal import entries
from orders.journal.entries import Stamp
from orders.journal.writing import writing
from orders.machine import ALERT_TABLE, Act, AlertState
from orders.models import Alert
from orders.prepared import Prepared, insert, insert_one, update


class AlertGoneError(Exception):
    """The alert is resolved already, or was never there."""


@dataclass(frozen=True, slots=True)
class AlertDraft:
    """`topic` makes two alerts the same; `remedy` tells the reader what to do."""

    kind: str
    topic: str
    severity: str
    message: str
    remedy: str
    account_id: int | None = None
    market_id: int | None = None
    intent_id: int | None = None


def raise_alert(draft: AlertDraft, *, actor: str, at: datetime) -> Alert:
    """Raise it, or count it once more where it is not resolved yet."""
    with writing():
        return put(draft, Stamp.new(actor, at))


def acknowledge(alert_id: int, *, actor: str, note: str, at: datetime) -> Alert:
    """Somebody looks after it. Acknowledging twice keeps the first name and changes nothing."""
    with writing():
        alert = _locked(alert_id)
        if alert.state == AlertState.ACKNOWLEDGED:
            return alert
        before = _move(alert, Act.ACKNOWLEDGED)
        alert.acknowledged_at, alert.acknowledged_by, alert.note = at, actor, note
        alert.save()
        stamp = Stamp.new(actor, at)
        insert([entries.of_alert(alert, stamp, Act.ACKNOWLEDGED, before, reason=note)])
        return alert


def resolve(alert_id: int, *, actor: str, reason: str, at: datetime) -> Alert:
    with writing():
        alert = _locked(alert_id)
        settle(alert, Stamp.new(actor, at), reason)
        return alert


def resolve_topic(topic: str, *, actor: str, reason: str, at: datetime) -> None:
    """The topic's alert is over, if there is one. Writes nothing where there is none."""
    if is_open(topic):
        with writing():
            settle_topics(topic, Stamp.new(actor, at), reason)


def put(draft: AlertDraft, stamp: Stamp) -> Alert:
    """Within a transaction: raise, or raise again."""
    alert = _LOCKED.first(draft.topic)
    known = alert is not None
    if alert is None:
        alert = Alert(
            account_id=draft.account_id,
            market_id=draft.market_id,
            intent_id=draft.intent_id,
            kind=draft.kind,
            topic=draft.topic,
            severity=draft.severity,
            state=ALERT_TABLE[None, Act.RAISED].value,
            raised_at=stamp.at,
        )
        act, before = Act.RAISED, ""
    else:
        act, before = Act.RAISED_AGAIN, alert.state
        alert.times += 1
    alert.message, alert.remedy = entries.clean(draft.message), draft.remedy
    alert.last_raised_at = stamp.at
    if known:
        update(alert, ("times", "message", "remedy", "last_raised_at"))
    else:
        insert_one(alert)
    insert([entries.of_alert(alert, stamp, act, before, reason=alert.message)])
    return alert


def settle(alert: Alert, stamp: Stamp, reason: str) -> None:
    """Within a transaction, on a locked row: it is over."""
    before = _move(alert, Act.RESOLVED)
    alert.resolved_at, alert.resolved_by = stamp.at, stamp.actor
    update(alert, ("state", "resolved_at", "resolved_by"))
    insert([entries.of_alert(alert, stamp, Act.RESOLVED, before, reason=reason)])


def settle_topics(prefix: str, stamp: Stamp, reason: str) -> None:
    """Within a transaction: the open alerts whose topics begin so are over."""
    rows = Alert.objects.select_for_update().filter(topic__startswith=prefix)
    for alert in rows.exclude(state=AlertState.RESOLVED).order_by("pk"):
        settle(alert, stamp, reason)


def is_open(topic: str) -> bool:
    """Whether the topic has an alert that is not resolved."""
    return _OPEN.any(topic)


_LOCKED: Prepared[Alert] = Prepared(
    lambda topic: (
        Alert.objects.select_for_update().filter(topic=topic).exclude(state=AlertState.RESOLVED)
    )
)
_OPEN: Prepared[int] = Prepared(
    lambda topic: (
        Alert.objects.filter(topic=topic)
        .exclude(state=AlertState.RESOLVED)
        .values_list("pk", flat=True)[:1]
    )
)


def _locked(alert_id: int) -> Alert:
    try:
        return Alert.objects.select_for_update().get(pk=alert_id)
    except Alert.DoesNotExist:
        raise AlertGoneError(f"there is no alert {alert_id}") from None


def _move(alert: Alert, act: Act) -> str:
    before = AlertState(alert.state)
    if (before, act) not in ALERT_TABLE:
        raise AlertGoneError(f"alert {alert.pk} is {before.value.lower()} already")
    alert.state = ALERT_TABLE[before, act].value
    return before.value
