"""One report of the venue about an order of ours, turned into changes of its intent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from orders.journal import Change, Halt
from orders.lane.context import Lane, log
from orders.machine import AT_VENUE, TERMINAL, Event, Note, State
from orders.models import Intent
from venues.gateway import Evidence, OrderReport, OrderStatus, TradeReport
from venues.profiles import Rung

_ENDS = {
    OrderStatus.FILLED: Event.FILLED,
    OrderStatus.CANCELED: Event.CANCELED,
    OrderStatus.REJECTED: Event.REJECTED,
}
_EXISTS = {
    State.IN_FLIGHT: Event.ACCEPTED,
    State.UNKNOWN: Event.ACCEPTED,
    State.RECONCILING: Event.FOUND,
    State.INTENT: Event.FOUND,
}


def is_ours(report: OrderReport, intent: Intent) -> bool:
    """A match is our client order ID, all of it, with our symbol and side."""
    return (
        report.client_order_id == intent.client_order_id
        and report.symbol == intent.symbol
        and report.side == intent.side
        and bool(report.venue_order_id)
    )


@dataclass(frozen=True, slots=True)
class Sighting:
    """A report and where it came from: "answer", "push", "look:client_id" and so on."""

    report: OrderReport
    source: str
    evidence: Mapping[str, Any]


def sighting(report: OrderReport, source: str, evidence: Evidence | None = None) -> Sighting:
    known = evidence.as_json() if evidence is not None else _as_evidence(report)
    return Sighting(report, source, known)


def _as_evidence(report: OrderReport) -> dict[str, Any]:
    return {
        "call": "push",
        "venue_order_id": report.venue_order_id,
        "status": report.status.value,
        "filled": str(report.filled),
        "reason": report.reason,
    }


async def absorb(lane: Lane, intent_id: int, seen: Sighting) -> Intent | None:
    """Make the journal follow the report. The report's order must be ours.

    Returns the intent as it is now, None where the lane does not hold it any more.
    """
    async with lane.book.lock(intent_id):
        intent = lane.book.get(intent_id) or await _load(lane, intent_id)
        if intent is None:
            return None
        if intent.venue_order_id and seen.report.venue_order_id != intent.venue_order_id:
            return await _two_orders(lane, intent, seen)
        if State(intent.state) in TERMINAL:
            return await _after_the_end(lane, intent, seen)
        done = await lane.recorder.write(*_changes(intent, seen))
        if done and not done[0].applied and State(done[0].intent.state) in TERMINAL:
            return await _after_the_end(lane, done[0].intent, seen)  # ended behind our back
        return await _settle(lane, done[-1].intent if done else intent, seen)


def _changes(intent: Intent, seen: Sighting) -> list[Change]:
    """It exists; what it executed; that it works."""
    report, state = seen.report, State(intent.state)
    changes: list[Change] = []
    if state in _EXISTS:
        changes.append(
            Change(
                intent.pk,
                _EXISTS[state],
                expect=frozenset({state}),
                reason=f"{seen.source}: the venue has the order",
                evidence=seen.evidence,
                columns={"venue_order_id": report.venue_order_id},
            )
        )
    filled = max(report.filled, intent.venue_filled)
    if report.trades or filled != intent.venue_filled:
        changes.append(_fill(intent, seen.source, report.trades, filled))
    if report.status is OrderStatus.OPEN and state is not State.LIVE:
        changes.append(
            Change(
                intent.pk,
                Event.WORKING,
                expect=frozenset({State.ACKED}),
                reason=f"{seen.source}: open at the venue",
            )
        )
    return changes


def _fill(
    intent: Intent, source: str, trades: tuple[TradeReport, ...], venue_filled: Decimal
) -> Change:
    return Change(
        intent.pk,
        Note.FILL,
        expect=AT_VENUE,
        reason=f"{source}: the venue reports {venue_filled} executed",
        columns={"venue_filled": venue_filled} if venue_filled != intent.venue_filled else {},
        fills=trades,
    )


async def _settle(lane: Lane, intent: Intent, seen: Sighting) -> Intent:
    """Book what is missing; end the intent where the venue says so and all fills are booked."""
    if State(intent.state) not in AT_VENUE:
        return intent
    if intent.filled < intent.venue_filled:
        intent = await _fetch_trades(lane, intent)
    event = _ENDS.get(seen.report.status)
    if event is None or intent.filled != intent.venue_filled:
        return intent
    if State(intent.state) not in AT_VENUE or intent.venue_filled != seen.report.filled:
        return intent
    done = await lane.recorder.write(
        Change(
            intent.pk,
            event,
            expect=AT_VENUE,
            reason=seen.report.reason or f"{seen.source}: {seen.report.status.value}",
            evidence=seen.evidence,
        )
    )
    return done[0].intent


async def _fetch_trades(lane: Lane, intent: Intent) -> Intent:
    """The executions of one order. A venue may show them a little later than the order's end."""
    await lane.limiter.request()
    look = await lane.gateway.look(Rung.TRADES, intent.symbol, venue_order_id=intent.venue_order_id)
    await lane.heed(look.limited_until_desk_ms)
    trades = tuple(trade for trade in look.trades if trade.venue_order_id == intent.venue_order_id)
    if not look.answered or not trades:
        return intent
    done = await lane.recorder.write(
        _fill(intent, "trades", trades, max(intent.venue_filled, _total(trades)))
    )
    return done[0].intent


def _total(trades: tuple[TradeReport, ...]) -> Decimal:
    return sum((trade.quantity for trade in trades), Decimal(0))


async def _ask_again(lane: Lane, intent: Intent) -> Intent:
    """The report may have been on its way while the order ended: only a later one counts."""
    await lane.limiter.request()
    look = await lane.gateway.look(
        Rung.VENUE_ID, intent.symbol, venue_order_id=intent.venue_order_id
    )
    await lane.heed(look.limited_until_desk_ms)
    for report in look.reports:
        if is_ours(report, intent):
            seen = sighting(report, "look:venue_id", look.evidence)
            return await _after_the_end(lane, intent, seen, fresh=True)
    return intent


async def _after_the_end(
    lane: Lane, intent: Intent, seen: Sighting, *, fresh: bool = False
) -> Intent:
    """News of an intent that had ended: late but consistent, or a contradiction."""
    report, state = seen.report, State(intent.state)
    never_there = state in (State.REJECTED, State.DENIED) and not intent.venue_order_id
    more = report.filled > intent.filled
    alive = report.status is OrderStatus.OPEN and state is State.CANCELED
    if alive and not more and not fresh:
        return await _ask_again(lane, intent)
    if not (never_there or more or alive):
        return intent
    reason = (
        f"{seen.source}: the venue has order {report.venue_order_id}, {report.status.value}, "
        f"{report.filled} executed, against {state.value} with {intent.filled} booked"
    )
    done = await lane.recorder.write(
        Change(
            intent.pk,
            Event.CONTRADICTED,
            expect=frozenset({state}),
            reason=reason,
            evidence=seen.evidence,
        ),
        halts=[
            Halt(
                intent.market_id,
                f"contradicted {intent.client_order_id}: {reason}",
                kind="contradicted",
                intent_id=intent.pk,
            )
        ],
    )
    if not done[0].applied:
        return done[0].intent
    found = Change(
        intent.pk,
        Event.FOUND,
        expect=frozenset({State.RECONCILING}),
        reason=reason,
        columns={"venue_order_id": report.venue_order_id},
    )
    filled = _fill(intent, seen.source, report.trades, max(report.filled, intent.venue_filled))
    done = await lane.recorder.write(found, filled)
    return await _settle(lane, done[-1].intent, seen)


async def _two_orders(lane: Lane, intent: Intent, seen: Sighting) -> Intent:
    """The venue shows a second order under one of our IDs: halt, keep both, tell people."""
    reason = (
        f"two venue orders with the client order ID {intent.client_order_id}: "
        f"{intent.venue_order_id} and {seen.report.venue_order_id}"
    )
    log.error("two_orders_with_one_id", account=lane.account.name, reason=reason)
    done = await lane.recorder.write(
        Change(intent.pk, Note.EVIDENCE, reason=reason, evidence=seen.evidence),
        halts=[Halt(intent.market_id, reason, kind="two orders", intent_id=intent.pk)],
    )
    return done[0].intent


async def _load(lane: Lane, intent_id: int) -> Intent | None:
    """An intent that has ended, and so left the book."""
    return await lane.database.run(lambda: Intent.objects.filter(pk=intent_id).first())


async def by_client_id(lane: Lane, client_order_id: str) -> Intent | None:
    """Whose order it is; None for a stranger's."""
    held = lane.book.by_client_id(client_order_id)
    if held is not None or not client_order_id:
        return held
    return await lane.database.run(
        lambda: Intent.objects.filter(
            account_id=lane.account.pk, client_order_id=client_order_id
        ).first()
    )
