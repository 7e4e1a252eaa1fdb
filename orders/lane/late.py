"""News that should not be: of an intent that had ended, or of an order that belongs elsewhere.

Nothing that filled is dropped: the intent is reopened, its fills are booked, its market halts, and
people see the evidence.
"""

from __future__ import annotations

from decimal import Decimal

from django.db import IntegrityError

from orders import journal
from orders.journal import SECOND, Change, Halt, Orphan
from orders.lane.context import Lane, log
from orders.lane.settle import Sighting, fill_change, is_ours, settle, sighting, total
from orders.machine import Event, Note, State
from orders.models import Fill, Intent
from venues.gateway import OrderReport, OrderStatus, TradeReport
from venues.profiles import Rung

NOT_OURS = "Look at both orders on the venue's own pages; which one is this intent's?"


async def after_the_end(
    lane: Lane, intent: Intent, seen: Sighting, *, fresh: bool = False
) -> Intent:
    """News of an intent that had ended: late but consistent, or a contradiction.

    `fresh`: the report was asked for after the end.
    """
    report, state = seen.report, State(intent.state)
    news = await lane.database.run(lambda: _unbooked(intent, report.trades))
    executed = max(report.filled, intent.filled + total(news))
    more = executed > intent.filled
    refused = state is State.REJECTED and report.status is OrderStatus.REJECTED
    unheard_of = not intent.venue_order_id and not refused
    alive = report.status is OrderStatus.OPEN and intent.filled < intent.quantity
    if alive and not (more or unheard_of or fresh):
        return await _ask_again(lane, intent)
    if not (more or unheard_of or alive):
        return intent
    reason = (
        f"{seen.source}: the venue has order {report.venue_order_id}, {report.status.value}, "
        f"{executed} executed, against {state.value} with {intent.filled} booked"
    )
    return await _reopen(lane, intent, seen, executed, reason)


def report_of(intent: Intent, trades: tuple[TradeReport, ...]) -> OrderReport:
    """What executions alone say of the order: that it exists, and executed these."""
    return OrderReport(
        venue_order_id=intent.venue_order_id,
        client_order_id=intent.client_order_id,
        symbol=intent.symbol,
        side=intent.side,
        status=OrderStatus.UNKNOWN,
        quantity=intent.quantity,
        filled=Decimal(0),
        trades=trades,
    )


def _unbooked(intent: Intent, trades: tuple[TradeReport, ...]) -> tuple[TradeReport, ...]:
    if not trades:
        return ()
    rows = Fill.objects.filter(
        market_id=intent.market_id, venue_trade_id__in=[trade.venue_trade_id for trade in trades]
    )
    booked = set(rows.values_list("venue_trade_id", "venue_order_id"))
    return tuple(
        trade for trade in trades if (trade.venue_trade_id, trade.venue_order_id) not in booked
    )


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
            return await after_the_end(lane, intent, seen, fresh=True)
    return intent


async def _reopen(
    lane: Lane, intent: Intent, seen: Sighting, executed: Decimal, reason: str
) -> Intent:
    """Halt, adopt, book; the end is then what the venue shows."""
    done = await lane.recorder.write(
        Change(
            intent.pk,
            Event.CONTRADICTED,
            expect=frozenset({State(intent.state)}),
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
        columns={"venue_order_id": seen.report.venue_order_id},
    )
    venue_filled = max(executed, intent.venue_filled)
    filled = fill_change(intent, seen.source, seen.report.trades, venue_filled)
    done = await lane.recorder.write(found, filled)
    return await settle(lane, done[-1].intent, seen)


async def second_order(lane: Lane, intent: Intent, seen: Sighting) -> Intent | None:
    """The venue shows a second order under one of our IDs: halt, follow both, tell people.

    Returns the intent of the second order; None where it belongs to another of our IDs.
    """
    order = seen.report.venue_order_id
    held = await _holder(lane, intent, order)
    if held is not None:
        if held.client_order_id.partition(SECOND)[0] == intent.client_order_id:
            return held
        await _tell_taken(lane, intent, held, seen)
        return None
    reason = (
        f"two venue orders with the client order ID {intent.client_order_id}: "
        f"{intent.venue_order_id} and {order}"
    )
    log.error("two_orders_with_one_id", account=lane.account.name, reason=reason)
    await lane.recorder.write(
        Change(intent.pk, Note.EVIDENCE, reason=reason, evidence=seen.evidence),
        halts=[Halt(intent.market_id, reason, kind="two orders", intent_id=intent.pk)],
    )
    orphan = Orphan(intent.market_id, seen.report, seen.evidence, second=True)
    second = await lane.database.run(
        lambda: journal.adopt(orphan, hold=lane.hold, actor=lane.actor, at=lane.clock.now())
    )
    lane.book.keep([second])
    return second


async def taken(lane: Lane, intent_id: int, seen: Sighting, error: IntegrityError) -> Intent:
    """The report's order belongs to another intent already: it cannot be this one's too.

    Raises the database's error where that is not what it was about.
    """
    intent = await lane.database.run(lambda: Intent.objects.get(pk=intent_id))
    held = await _holder(lane, intent, seen.report.venue_order_id)
    if held is None:
        raise error
    return await _tell_taken(lane, intent, held, seen)


async def _tell_taken(lane: Lane, intent: Intent, held: Intent, seen: Sighting) -> Intent:
    """Once per pair. An attempt that is out stays in doubt: its answer cannot be believed."""
    reason = (
        f"{seen.source}: the venue names order {seen.report.venue_order_id} for "
        f"{intent.client_order_id}, but it is that of {held.client_order_id}"
    )
    if await lane.database.run(lambda: intent.transitions.filter(reason=reason).exists()):
        return intent
    log.error("one_order_for_two_intents", account=lane.account.name, reason=reason)
    out = frozenset({State.IN_FLIGHT})
    done = await lane.recorder.write(
        Change(
            intent.pk,
            Note.EVIDENCE,
            reason=reason,
            evidence=seen.evidence,
            columns={"known": True},
        ),
        Change(held.pk, Note.EVIDENCE, reason=reason, evidence=seen.evidence),
        Change(intent.pk, Event.NO_ANSWER, expect=out, attempt=intent.attempt, reason=reason),
        halts=[
            Halt(
                intent.market_id,
                reason,
                kind="one order twice",
                remedy=NOT_OURS,
                intent_id=intent.pk,
            )
        ],
    )
    return done[-1].intent


async def _holder(lane: Lane, intent: Intent, venue_order_id: str) -> Intent | None:
    """Who else has this venue order."""
    rows = Intent.objects.filter(market_id=intent.market_id, venue_order_id=venue_order_id)
    return await lane.database.run(rows.exclude(pk=intent.pk).first)
