"""One report of the venue about an order of ours, turned into changes of its intent."""

from __future__ import annotations

from functools import partial

from django.db import IntegrityError

from orders.journal import Change
from orders.lane import late
from orders.lane.context import Lane
from orders.lane.settle import Sighting, fill_change, is_ours, settle, sighting
from orders.machine import TERMINAL, Event, State
from orders.models import Intent
from orders.prepared import Prepared
from venues.gateway import Evidence, OrderStatus, TradeReport

__all__ = ["Sighting", "absorb", "absorb_trades", "by_client_id", "is_ours", "sighting"]

_BY_PK: Prepared[Intent] = Prepared(lambda pk: Intent.objects.filter(pk=pk))
_BY_NAME: Prepared[Intent] = Prepared(
    lambda account_id, name: Intent.objects.filter(account_id=account_id, client_order_id=name)
)
_EXISTS = {
    State.IN_FLIGHT: Event.ACCEPTED,
    State.UNKNOWN: Event.ACCEPTED,
    State.RECONCILING: Event.FOUND,
    State.INTENT: Event.FOUND,
}


async def absorb(lane: Lane, intent_id: int, seen: Sighting) -> Intent | None:
    """Make the journal follow the report. The report's order must be ours.

    Returns the intent as it is now, None where the lane does not hold it any more. Where the report
    is of a second order under the same ID, that one is followed as an intent of its own.
    """
    async with lane.book.lock(intent_id):
        intent = lane.book.get(intent_id) or await _load(lane, intent_id)
        if intent is None:
            return None
        if not intent.venue_order_id or seen.report.venue_order_id == intent.venue_order_id:
            try:
                return await _follow(lane, intent, seen)
            except IntegrityError as error:  # one venue order cannot belong to two intents
                return await late.taken(lane, intent_id, seen, error)
    second = await late.second_order(lane, intent, seen)
    if second is not None:
        await absorb(lane, second.pk, seen)
    return intent


async def _follow(lane: Lane, intent: Intent, seen: Sighting) -> Intent:
    if State(intent.state) in TERMINAL:
        return await late.after_the_end(lane, intent, seen)
    done = await lane.recorder.write(*_changes(intent, seen))
    if done and not done[0].applied and State(done[0].intent.state) in TERMINAL:
        return await late.after_the_end(lane, done[0].intent, seen)  # ended behind our back
    return await settle(lane, done[-1].intent if done else intent, seen)


async def absorb_trades(
    lane: Lane, intent_id: int, trades: tuple[TradeReport, ...], source: str, evidence: Evidence
) -> Intent | None:
    """Executions of an order that had ended, where no report of the order itself was met."""
    async with lane.book.lock(intent_id):
        intent = await _load(lane, intent_id)
        if intent is None or State(intent.state) not in TERMINAL:
            return intent
        report = late.report_of(intent, trades)
        return await late.after_the_end(lane, intent, sighting(report, source, evidence))


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
        changes.append(fill_change(intent, seen.source, report.trades, filled))
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


async def _load(lane: Lane, intent_id: int) -> Intent | None:
    """An intent that has ended, and so left the book."""
    return await lane.database.run(partial(_BY_PK.first, intent_id))


async def by_client_id(lane: Lane, client_order_id: str) -> Intent | None:
    """Whose order it is; None for a stranger's."""
    held = lane.book.by_client_id(client_order_id)
    if held is not None or not client_order_id:
        return held
    return await lane.database.run(partial(_BY_NAME.first, lane.account.pk, client_order_id))
