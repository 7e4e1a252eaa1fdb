"""What the venue says of an order of ours: whose it is, what it executed, how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from orders.journal import SECOND, Change
from orders.lane.context import Lane
from orders.machine import AT_VENUE, Event, Note, State
from orders.models import Intent
from venues.gateway import Evidence, OrderReport, OrderStatus, TradeReport
from venues.profiles import Rung

_ENDS = {
    OrderStatus.FILLED: Event.FILLED,
    OrderStatus.CANCELED: Event.CANCELED,
    OrderStatus.REJECTED: Event.REJECTED,
}


def is_ours(report: OrderReport, intent: Intent) -> bool:
    """A match is our client order ID, all of it, with our symbol and side.

    Of two venue orders with one ID the second is known by its venue order ID too.
    """
    name, _, second = intent.client_order_id.partition(SECOND)
    return (
        report.client_order_id == name
        and report.symbol == intent.symbol
        and report.side == intent.side
        and bool(report.venue_order_id)
        and (not second or report.venue_order_id == intent.venue_order_id)
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


def fill_change(
    intent: Intent, source: str, trades: tuple[TradeReport, ...], venue_filled: Decimal
) -> Change:
    """Book the trades, and what the venue reports as executed in all."""
    return Change(
        intent.pk,
        Note.FILL,
        expect=AT_VENUE,
        reason=f"{source}: the venue reports {venue_filled} executed",
        columns={"venue_filled": venue_filled} if venue_filled != intent.venue_filled else {},
        fills=trades,
    )


async def settle(lane: Lane, intent: Intent, seen: Sighting) -> Intent:
    """Book what is missing; end the intent where the venue says so and all fills are booked."""
    if State(intent.state) not in AT_VENUE:
        return intent
    if intent.filled < intent.venue_filled:
        intent = await _fetch_trades(lane, intent)
    event = _end(seen.report)
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


def _end(report: OrderReport) -> Event | None:
    """What executed in part was not rejected, whatever the venue calls it."""
    if report.status is OrderStatus.REJECTED and report.filled:
        return Event.CANCELED
    return _ENDS.get(report.status)


async def _fetch_trades(lane: Lane, intent: Intent) -> Intent:
    """The executions of one order. A venue may show them a little later than the order's end."""
    await lane.limiter.request()
    look = await lane.gateway.look(Rung.TRADES, intent.symbol, venue_order_id=intent.venue_order_id)
    await lane.heed(look.limited_until_desk_ms)
    trades = tuple(trade for trade in look.trades if trade.venue_order_id == intent.venue_order_id)
    if not look.answered or not trades:
        return intent
    done = await lane.recorder.write(
        fill_change(intent, "trades", trades, max(intent.venue_filled, total(trades)))
    )
    return done[0].intent


def total(trades: tuple[TradeReport, ...]) -> Decimal:
    return sum((trade.quantity for trade in trades), Decimal(0))
