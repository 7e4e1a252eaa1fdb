"""One claimed intent, one request, and what its answer means."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

from orders.journal import Change, Halt, LeaseLostError, Window, attempt_expiry_ms
from orders.lane import points
from orders.lane.absorb import absorb, is_ours, sighting
from orders.lane.context import Lane
from orders.machine import Event, Note, State
from orders.models import Intent
from venues.gateway import OrderSpec, Outcome, Permit, PlaceAnswer
from venues.profiles import UsedId

MAX_RETURNS = 5  # how often an intent may come back to INTENT before people are asked
BACKOFF_S = 0.25
ANSWER_GRACE_MS = 1000  # beyond the gateway's own time-out


async def send(lane: Lane, intent: Intent, window: Window) -> None:
    """Send the claimed attempt and record what came of it.

    Raises TimeoutError where the gateway's own time-out fails: the attempt is in doubt then.
    """
    permit = _permit(lane, intent, window)
    points.reach(points.BEFORE_SEND)
    async with asyncio.timeout((lane.account.timeout_ms + ANSWER_GRACE_MS) / 1000):
        answer = await lane.gateway.place(_spec(intent), permit)
    points.reach(points.AFTER_SEND)
    lane.note_limit(answer.limited_until_desk_ms)
    if answer.outcome is Outcome.NOT_PLACED and answer.evidence.sent and not lane.limited:
        # Refused for its age, maybe: the venue's clock may have stepped since it was read.
        await lane.limiter.request()
        await lane.learn_clock()
    await digest(lane, intent, answer)
    await lane.heed(answer.limited_until_desk_ms)


def _permit(lane: Lane, intent: Intent, window: Window) -> Permit:
    """The right to send once, before the lease or the request's own expiry ends."""
    wall_ms = window.at.timestamp() * 1000
    claimed_venue_ms = int(wall_ms + window.offset_ms)
    expires = attempt_expiry_ms(intent, window)
    left_s = (window.expiry_ms or lane.account.request_expiry_ms) / 1000
    age_s = (lane.clock.now() - window.at) / timedelta(seconds=1)
    return Permit(
        client_order_id=intent.client_order_id,
        attempt=intent.attempt,
        claimed_venue_ms=claimed_venue_ms,
        expires_venue_ms=expires or claimed_venue_ms + lane.account.request_expiry_ms,
        send_before_monotonic_s=min(
            lane.deadline(), lane.clock.monotonic() + left_s - max(age_s, 0.0)
        ),
    )


def _spec(intent: Intent) -> OrderSpec:
    return OrderSpec(
        symbol=intent.symbol,
        side=intent.side,
        type=intent.type,
        quantity=intent.quantity,
        price=intent.price,
        time_in_force=intent.time_in_force or None,
        post_only=intent.post_only,
        reduce_only=intent.reduce_only,
        params=intent.params,
    )


async def digest(lane: Lane, intent: Intent, answer: PlaceAnswer) -> None:
    """Record an answer. It belongs to its attempt; that an order exists is true for all of them."""
    report = answer.report
    if answer.outcome is Outcome.ACCEPTED and report is not None and is_ours(report, intent):
        await absorb(lane, intent.pk, sighting(report, "answer", answer.evidence))
        return
    change = _change(lane, intent, answer)
    halts = _halts(intent, change, answer)
    try:
        done = await lane.recorder.write(change, halts=halts)
    except LeaseLostError:
        return  # kept as evidence by the recorder; the successor finds out
    if not done[0].applied:
        await _keep(lane, intent, answer)


def _change(lane: Lane, intent: Intent, answer: PlaceAnswer) -> Change:
    event, columns = _event(lane, intent, answer)
    return Change(
        intent.pk,
        event,
        expect=frozenset({State.IN_FLIGHT}),
        attempt=intent.attempt,
        reason=answer.message or answer.evidence.error or event.value,
        evidence=answer.evidence.as_json(),
        columns=columns,
    )


def _event(lane: Lane, intent: Intent, answer: PlaceAnswer) -> tuple[Event, dict[str, Any]]:
    match answer.outcome:
        case Outcome.REJECTED:
            return Event.REJECTED, {}
        case Outcome.NOT_PLACED:
            return Event.NOT_PLACED, _not_placed(lane, intent, answer)
        case Outcome.DUPLICATE:
            # Where a failed request burns its ID, a duplicate does not mean that an order exists.
            known = lane.gateway.profile.used_id is not UsedId.BURNED
            return Event.DUPLICATE, {"known": True} if known else {}
    return Event.NO_ANSWER, {}


def _not_placed(lane: Lane, intent: Intent, answer: PlaceAnswer) -> dict[str, Any]:
    """When to try again. A limit that the venue set is no failed try."""
    if answer.limited_until_desk_ms is not None and lane.limited_until is not None:
        return {"not_before": lane.limited_until, "returns": intent.returns}
    delay = timedelta(seconds=BACKOFF_S * 2**intent.returns)
    later: datetime = lane.clock.now() + delay
    return {"not_before": later}


def _halts(intent: Intent, change: Change, answer: PlaceAnswer) -> list[Halt]:
    """All returns to INTENT share one bound."""
    if change.event is not Event.NOT_PLACED or "returns" in change.columns:
        return []
    if intent.returns < MAX_RETURNS:
        return []
    return [
        Halt(
            intent.market_id,
            f"{intent.client_order_id} could not be placed in {intent.attempt} attempts, "
            f"last: {answer.message or answer.evidence.error}",
            kind="not placed",
            remedy="Nothing of it is at the venue. Check the venue and the network, then resume.",
            intent_id=intent.pk,
        )
    ]


async def _keep(lane: Lane, intent: Intent, answer: PlaceAnswer) -> None:
    """The truth was known before the answer came, or a later attempt is under way."""
    _, columns = _event(lane, intent, answer)
    await lane.recorder.write(
        Change(
            intent.pk,
            Note.EVIDENCE,
            reason=f"answer to attempt {intent.attempt}, too late to decide: {answer.message}",
            evidence=answer.evidence.as_json(),
            columns={"known": True} if columns.get("known") else {},
        )
    )
