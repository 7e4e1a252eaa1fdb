"""Changes of intents, collected and written together within one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from orders.journal import entries
from orders.journal.entries import Stamp
from orders.machine import AT_VENUE, IN_DOUBT, TERMINAL, Event, Note, State, next_state
from orders.models import Fill, Intent, Market, Transition
from orders.prepared import Prepared, insert, update
from venues.gateway import TradeReport

_NONE: Mapping[str, Any] = {}

# What proves that the order exists, or once did.
_SHOWS_IT_EXISTS = {Event.ACCEPTED, Event.FOUND, Event.RULED_FOUND, Event.CONTRADICTED}
_ENDS_AT_VENUE = {Event.FILLED, Event.CANCELED}


_BOOKED: Prepared[tuple[str, str]] = Prepared(
    lambda market_id, ids: Fill.objects.filter(
        market_id=market_id, venue_trade_id__in=ids
    ).values_list("venue_trade_id", "venue_order_id")
)


LOCKED_MARKETS: Prepared[Market] = Prepared(
    lambda ids: Market.objects.select_for_update(no_key=True).filter(pk__in=ids).order_by("pk")
)


class BrokenRuleError(Exception):
    """A change would break a rule of the journal. A bug in the caller: nothing was written."""


@dataclass(frozen=True, slots=True)
class Change:
    """One step of one intent.

    It counts only where the intent is still in `expect` and at `attempt` (None: any). `columns` are
    set beside the state; `fills` are booked first, each at most once.
    """

    intent_id: int
    event: Event | Note
    expect: frozenset[State] | None = None
    attempt: int | None = None
    reason: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    columns: Mapping[str, Any] = field(default_factory=dict)
    fills: tuple[TradeReport, ...] = ()


class Batch:
    """Holds locked rows; `flush` writes what was applied to them."""

    def __init__(self, stamp: Stamp) -> None:
        self.stamp = stamp
        self._dirty: dict[int, tuple[Intent, int, set[str]]] = {}
        self._transitions: list[Transition] = []
        self._fills: list[Fill] = []
        self._booked: set[tuple[int, str, str]] = set()
        self._markets: dict[int, Market] = {}

    def hold_markets(self, markets: Iterable[Market]) -> None:
        """Locked market rows, whose position and last event follow the changes."""
        self._markets.update({market.pk: market for market in markets})

    def market(self, market_id: int) -> Market:
        return self._markets[market_id]

    def apply(
        self,
        intent: Intent,
        event: Event | Note,
        *,
        reason: str = "",
        evidence: Mapping[str, Any] = _NONE,
        columns: Mapping[str, Any] = _NONE,
        fills: tuple[TradeReport, ...] = (),
    ) -> None:
        """Take one step. Raises IllegalEventError or BrokenRuleError, and nothing is written."""
        before = intent.state
        new_fills = self._book(intent, fills)
        if event is Note.FILL and not new_fills and not columns:
            return
        changed = dict(columns)
        if isinstance(event, Event):
            changed |= _consequences(intent, event, entries.clean(reason), self.stamp.at, columns)
        changed["version"] = intent.version + 1
        changed["updated_at"] = self.stamp.at
        self._assign(intent, changed)
        _check_end(intent, event, before)
        evidence = {**evidence, "fills": new_fills} if new_fills else evidence
        self._transitions.append(
            entries.of_intent(
                intent, self.stamp, event.value, before, reason=reason, evidence=evidence
            )
        )

    def flush(self) -> bool:
        """Write intents (compare-and-set by version), then fills, then the journal's lines.

        Returns whether there was anything to write.
        """
        if not self._transitions:
            return False
        for intent, version, names in self._dirty.values():
            written = update(intent, sorted(names), where=[("version", version)])
            if written != 1:
                raise BrokenRuleError(f"{intent.client_order_id} changed under its lock")
        insert(self._fills)
        insert(self._transitions)
        touched = {intent.market_id for intent, _, _ in self._dirty.values()}
        for market in self._markets.values():
            if market.pk in touched:
                market.last_event_at = self.stamp.at
                update(market, ["position", "last_event_at"])
        self._dirty.clear()
        self._fills.clear()
        self._transitions.clear()
        return True

    def _assign(self, intent: Intent, values: Mapping[str, Any]) -> None:
        _, _, names = self._dirty.setdefault(intent.pk, (intent, intent.version, set()))
        for name, value in values.items():
            setattr(intent, name, entries.clean(value))
        names.update(values)

    def _book(self, intent: Intent, fills: tuple[TradeReport, ...]) -> list[str]:
        """Book what is not booked yet; returns the venue's trade IDs that were new."""
        if not fills:
            return []
        ids = [fill.venue_trade_id for fill in fills]
        known = set(_BOOKED.rows(intent.market_id, ids))
        new = []
        for fill in fills:
            key = (intent.market_id, fill.venue_trade_id, fill.venue_order_id)
            if key[1:] in known or key in self._booked:
                continue
            self._booked.add(key)
            new.append(fill.venue_trade_id)
            self._add_fill(intent, fill)
        return new

    def _add_fill(self, intent: Intent, fill: TradeReport) -> None:
        self._fills.append(_fill_row(intent, fill, self.stamp))
        self._assign(
            intent,
            {
                "filled": intent.filled + fill.quantity,
                "cost": intent.cost + fill.quantity * fill.price,
            },
        )
        market = self._markets[intent.market_id]
        market.position += fill.quantity if fill.side == "buy" else -fill.quantity


def _fill_row(intent: Intent, fill: TradeReport, stamp: Stamp) -> Fill:
    return Fill(
        account_id=intent.account_id,
        market_id=intent.market_id,
        intent=intent,
        venue_trade_id=fill.venue_trade_id,
        venue_order_id=fill.venue_order_id,
        side=fill.side,
        quantity=fill.quantity,
        price=fill.price,
        fee=fill.fee,
        fee_currency=fill.fee_currency,
        at=datetime.fromtimestamp(fill.at_venue_ms / 1000, UTC),
        booked_at=stamp.at,
        actor=stamp.actor,
    )


def _consequences(
    intent: Intent, event: Event, reason: str, at: datetime, columns: Mapping[str, Any]
) -> dict[str, Any]:
    """What follows from the event alone, whoever reports it."""
    before = State(intent.state)
    former = State(intent.former_state) if intent.former_state else None
    after = next_state(before, event, former)
    if event is Event.ABSENT and (intent.known or columns.get("known")):
        raise BrokenRuleError(f"{intent.client_order_id} was known to exist: never absent")
    changed: dict[str, Any] = {"state": after.value, "reason": reason}
    if event in _SHOWS_IT_EXISTS:
        changed["known"] = True
    if event is Event.CONTRADICTED:
        changed["former_state"] = before.value
    if after is State.INTENT and "returns" not in columns:
        changed["returns"] = intent.returns + 1
    if after in IN_DOUBT and before not in IN_DOUBT:
        changed["doubt_since"] = at
    if after not in IN_DOUBT and before in IN_DOUBT:
        changed["doubt_since"] = None
    if after in TERMINAL or before in TERMINAL:
        changed["watched_since"] = at if _may_still_come(intent, after) else None
    return changed


def _may_still_come(intent: Intent, after: State) -> bool:
    """Whether an order or a fill may show up after this end: it was sent, and not all executed."""
    ended_short = after in TERMINAL - {State.FILLED} and intent.filled < intent.quantity
    return ended_short and bool(intent.attempt or intent.venue_order_id)


def _check_end(intent: Intent, event: Event | Note, before: str) -> None:
    ends = event in _ENDS_AT_VENUE and before in AT_VENUE
    if ends and intent.filled != intent.venue_filled:
        raise BrokenRuleError(
            f"{intent.client_order_id}: the venue reports {intent.venue_filled} executed, "
            f"booked are {intent.filled}; it cannot end"
        )
