"""What is at the venue, followed to its end: polled always, pushed where there is a stream."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from orders.journal import Change, Halt, LeaseLostError
from orders.lane.absorb import absorb, by_client_id, is_ours, sighting
from orders.lane.context import Lane, log
from orders.machine import AT_VENUE, IN_DOUBT, Event, Note, State
from orders.models import Intent
from venues.profiles import Rung

TICK_S = 0.1
POLL_S = 1.0  # per symbol with something at the venue
SYMBOLS_PER_S = 5.0  # the most that polling asks for
MISSES = 3
CANCEL_BACKOFF_S = (0.0, 1.0, 2.0, 3.0, 5.0, 5.0, 5.0, 60.0)  # the last is repeated
CANCEL_HALT_TRIES = 7


@dataclass
class Tracker:
    """Polls each symbol that has something at the venue, and sends the cancels asked for."""

    lane: Lane
    polled_at: dict[str, float] = field(default_factory=dict)
    missed: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    # By intent, and whether it was in doubt: how often a cancel was sent, and when last.
    canceled_at: dict[tuple[int, bool], tuple[int, float]] = field(default_factory=dict)

    async def run(self) -> None:
        while True:
            await self.lane.wait_limit()
            await self._round()
            await self.lane.clock.sleep(TICK_S)

    async def _round(self) -> None:
        by_symbol: dict[str, list[Intent]] = defaultdict(list)
        for intent in self.lane.book.having(*AT_VENUE):
            by_symbol[intent.symbol].append(intent)
        for intent in self.lane.book.having(*AT_VENUE, *IN_DOUBT):
            if self._cancel_due(intent):
                await self._cancel(intent)
        every_s = max(POLL_S, len(by_symbol) / SYMBOLS_PER_S)
        for symbol, intents in by_symbol.items():
            now = self.lane.clock.monotonic()
            if now - self.polled_at.get(symbol, 0.0) >= every_s and not self.lane.limited:
                self.polled_at[symbol] = now
                await self.poll(symbol, intents)

    async def poll(self, symbol: str, intents: list[Intent]) -> bool:
        """Compare with the venue's open orders; ask for each that is not among them."""
        missing = {intent.pk: intent for intent in intents}
        if len(intents) > 1:
            await self.lane.limiter.request()
            look = await self.lane.gateway.look(Rung.OPEN_ORDERS, symbol)
            await self.lane.heed(look.limited_until_desk_ms)
            if not look.answered:
                return False
            for report in look.reports:
                intent = self.lane.book.by_client_id(report.client_order_id)
                if intent is not None and is_ours(report, intent):
                    missing.pop(intent.pk, None)
                    self.missed.pop(intent.pk, None)
                    await absorb(
                        self.lane, intent.pk, sighting(report, "look:open_orders", look.evidence)
                    )
        for intent in missing.values():
            await self._ask(intent)
        return True

    async def _ask(self, intent: Intent) -> None:
        """Ask for one order by its venue order ID."""
        await self.lane.limiter.request()
        look = await self.lane.gateway.look(
            Rung.VENUE_ID, intent.symbol, venue_order_id=intent.venue_order_id
        )
        await self.lane.heed(look.limited_until_desk_ms)
        for report in look.reports:
            if is_ours(report, intent):
                self.missed.pop(intent.pk, None)
                seen = sighting(report, "look:venue_id", look.evidence)
                await absorb(self.lane, intent.pk, seen)
                return
        if look.answered:
            await self._miss(intent, look.evidence.as_json())

    async def _miss(self, intent: Intent, evidence: dict[str, object]) -> None:
        """Not found several times over longer than the venue's lag: sight is lost."""
        times = self.missed[intent.pk]
        times.append(self.lane.clock.monotonic())
        lag_s = self.lane.gateway.profile.visibility_lag_ms / 1000
        if len(times) < MISSES or times[-1] - times[0] < lag_s:
            return
        del self.missed[intent.pk]
        await self.lane.recorder.write(
            Change(
                intent.pk,
                Event.LOST_SIGHT,
                expect=AT_VENUE,
                reason=f"the venue did not know the order {len(times)} times",
                evidence=evidence,
                columns={"known": True},
            )
        )
        self.lane.wake.set()

    def _cancel_due(self, intent: Intent) -> bool:
        if intent.cancel_requested_at is None or self.lane.limited:
            return False
        tries, last = self.canceled_at.get(_cancel_key(intent), (0, 0.0))
        wait_s = CANCEL_BACKOFF_S[min(tries, len(CANCEL_BACKOFF_S) - 1)]
        return self.lane.clock.monotonic() - last >= wait_s

    async def _cancel(self, intent: Intent) -> None:
        """Send a cancel; the state follows what the venue then shows.

        Without the venue's ID it goes by ours. In doubt only what it meets counts: "unknown order"
        proves nothing.
        """
        key = _cancel_key(intent)
        tries, _ = self.canceled_at.get(key, (0, 0.0))
        self.canceled_at[key] = (tries + 1, self.lane.clock.monotonic())
        await self.lane.limiter.request()
        answer = await self.lane.gateway.cancel(
            intent.symbol, intent.client_order_id, intent.venue_order_id or None
        )
        await self.lane.heed(answer.limited_until_desk_ms)
        await self.lane.recorder.write(
            Change(
                intent.pk,
                Note.CANCEL_SENT,
                reason=answer.message or ("done" if answer.done else "not done"),
                evidence=answer.evidence.as_json(),
            ),
            halts=self._not_canceled(intent, tries + 1, answer.message),
        )
        if answer.report is not None and is_ours(answer.report, intent):
            await absorb(self.lane, intent.pk, sighting(answer.report, "cancel", answer.evidence))
        self.polled_at.pop(intent.symbol, None)

    def _not_canceled(self, intent: Intent, tries: int, message: str) -> list[Halt]:
        """A cancel that leads nowhere is a person's matter; it goes on, slowly."""
        if tries != CANCEL_HALT_TRIES or State(intent.state) in IN_DOUBT:  # doubt has its own end
            return []
        reason = f"the cancel of {intent.client_order_id} came to nothing {tries} times: {message}"
        return [Halt(intent.market_id, reason, kind="cancel", intent_id=intent.pk)]


def _cancel_key(intent: Intent) -> tuple[int, bool]:
    return intent.pk, State(intent.state) in IN_DOUBT


async def listen(lane: Lane) -> None:
    """Digest the venue's pushes. One that cannot be digested must not end the stream."""
    stream = lane.gateway.stream()
    if stream is None:
        return
    async for report in stream:
        intent = await by_client_id(lane, report.client_order_id)
        if intent is None or not is_ours(report, intent):
            continue
        try:
            await absorb(lane, intent.pk, sighting(report, "push"))
        except LeaseLostError:
            raise
        except Exception:
            log.exception("push_not_digested", client_order_id=report.client_order_id)
