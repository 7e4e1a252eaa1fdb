"""What the pages show of intents, as values that compare equal while nothing changed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db.models import Q

from orders.accounts import is_simulated
from orders.machine import ACTIVE, IN_DOUBT, TERMINAL, State
from orders.models import Fill, Intent, Transition

LATEST = 20
MOST = 50  # rows of one list on a page
MOST_LINES = 200  # journal lines on the page of one intent


@dataclass(frozen=True, slots=True)
class IntentRow:
    """One order in a list. `average` is the mean price of its fills."""

    pk: int
    account: str
    simulated: bool
    symbol: str
    client_order_id: str
    strategy: str
    side: str
    type: str
    quantity: Decimal
    price: Decimal | None
    filled: Decimal
    average: Decimal | None
    state: str
    reason: str
    created_at: datetime
    updated_at: datetime
    cancel_requested: bool
    orphan: bool  # the venue had it before the journal did

    @property
    def key(self) -> str:
        return f"intent-{self.pk}"

    @property
    def active(self) -> bool:
        return State(self.state) in ACTIVE


@dataclass(frozen=True, slots=True)
class FillRow:
    pk: int
    account: str
    client_order_id: str
    side: str
    quantity: Decimal
    price: Decimal
    fee: Decimal
    fee_currency: str
    venue_trade_id: str
    at: datetime
    booked_at: datetime

    @property
    def key(self) -> str:
        return f"fill-{self.pk}"


@dataclass(frozen=True, slots=True)
class JournalRow:
    """One line of the journal. `evidence` is readable JSON, "" for none or where not asked for."""

    pk: int
    at: datetime
    subject: str
    account: str
    client_order_id: str  # "" unless it is about an intent
    seq: int | None
    event: str
    from_state: str
    to_state: str
    actor: str
    reason: str
    attempt: int | None
    evidence: str

    @property
    def key(self) -> str:
        return f"line-{self.pk}"


@dataclass(frozen=True, slots=True)
class IntentDetail:
    """Everything about one order that may change, and the decision itself."""

    row: IntentRow
    market_id: int
    market_state: str  # as the board has it
    time_in_force: str
    post_only: bool
    params: str
    decided_at: datetime
    valid_until: datetime
    submitted_by: str
    key: str
    venue_order_id: str
    attempt: int
    returns: int
    venue_filled: Decimal
    doubt_since: datetime | None
    cancel_requested_at: datetime | None
    cancel_requested_by: str

    @property
    def in_doubt(self) -> bool:
        return State(self.row.state) in IN_DOUBT

    @property
    def ended(self) -> bool:
        return State(self.row.state) in TERMINAL

    @property
    def may_cancel(self) -> bool:
        return not self.ended and self.cancel_requested_at is None


def latest(limit: int = LATEST, market_id: int | None = None) -> list[IntentRow]:
    """The newest intents first, of one market or of all."""
    rows = Intent.objects.select_related("account").order_by("-pk")
    if market_id is not None:
        rows = rows.filter(market_id=market_id)
    return [row_of(intent) for intent in rows[:limit]]


def doubtful(unresolved: Q, market_id: int) -> list[IntentRow]:
    """What blocks a market, the oldest first."""
    rows = Intent.objects.select_related("account").filter(unresolved, market_id=market_id)
    return [row_of(intent) for intent in rows.order_by("pk")[:MOST]]


def rows_by_id(ids: Iterable[int]) -> dict[int, IntentRow]:
    rows = Intent.objects.select_related("account").filter(pk__in=list(ids))
    return {intent.pk: row_of(intent) for intent in rows}


def find(account: str, client_order_id: str) -> Intent | None:
    return (
        Intent.objects.select_related("account", "market")
        .filter(account__name=account, client_order_id=client_order_id)
        .first()
    )


def detail(intent_id: int) -> IntentDetail:
    """Raises Intent.DoesNotExist."""
    intent = Intent.objects.select_related("account", "market").get(pk=intent_id)
    return IntentDetail(
        row=row_of(intent),
        market_id=intent.market_id,
        market_state=intent.market.state,
        time_in_force=intent.time_in_force,
        post_only=intent.post_only,
        params=_json(intent.params),
        decided_at=intent.decided_at,
        valid_until=intent.valid_until,
        submitted_by=intent.submitted_by,
        key=intent.key,
        venue_order_id=intent.venue_order_id,
        attempt=intent.attempt,
        returns=intent.returns,
        venue_filled=intent.venue_filled,
        doubt_since=intent.doubt_since,
        cancel_requested_at=intent.cancel_requested_at,
        cancel_requested_by=intent.cancel_requested_by,
    )


def fills(limit: int = MOST, **where: Any) -> list[FillRow]:
    """The newest first."""
    rows = Fill.objects.select_related("account", "intent").filter(**where).order_by("-pk")
    return [
        FillRow(
            pk=fill.pk,
            account=fill.account.name,
            client_order_id=fill.intent.client_order_id,
            side=fill.side,
            quantity=fill.quantity,
            price=fill.price,
            fee=fill.fee,
            fee_currency=fill.fee_currency,
            venue_trade_id=fill.venue_trade_id,
            at=fill.at,
            booked_at=fill.booked_at,
        )
        for fill in rows[:limit]
    ]


def journal(limit: int = MOST, *, evidence: bool, **where: Any) -> list[JournalRow]:
    """The newest lines first."""
    rows = Transition.objects.select_related("account", "intent").filter(**where).order_by("-pk")
    if not evidence:  # raw answers may be long
        rows = rows.defer("evidence")
    return [_line(line, _json(line.evidence) if evidence else "") for line in rows[:limit]]


def _line(line: Transition, evidence: str) -> JournalRow:
    return JournalRow(
        pk=line.pk,
        at=line.at,
        subject=line.subject,
        account=line.account.name if line.account else "",
        client_order_id=line.intent.client_order_id if line.intent else "",
        seq=line.seq,
        event=line.event,
        from_state=line.from_state,
        to_state=line.to_state,
        actor=line.actor,
        reason=line.reason,
        attempt=line.attempt,
        evidence=evidence,
    )


def row_of(intent: Intent) -> IntentRow:
    return IntentRow(
        pk=intent.pk,
        account=intent.account.name,
        simulated=is_simulated(intent.account),
        symbol=intent.symbol,
        client_order_id=intent.client_order_id,
        strategy=intent.strategy,
        side=intent.side,
        type=intent.type,
        quantity=intent.quantity,
        price=intent.price,
        filled=intent.filled,
        average=_average(intent),
        state=intent.state,
        reason=intent.reason,
        created_at=intent.created_at,
        updated_at=intent.updated_at,
        cancel_requested=intent.cancel_requested_at is not None,
        orphan=intent.orphan,
    )


def _average(intent: Intent) -> Decimal | None:
    """To twelve significant digits, as a page shows it."""
    if not intent.filled:
        return None
    mean = intent.cost / intent.filled
    return mean.quantize(Decimal(1).scaleb(mean.adjusted() - 11)).normalize()


def _json(value: Any) -> str:
    """Readable; "" for nothing."""
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) if value else ""
