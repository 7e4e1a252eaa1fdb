"""One account, from taking its lease to giving it back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import datetime
from functools import partial
from typing import Any

from orders import accounts, journal
from orders.journal import AlertDraft, Change, Halt, LeaseLostError, Window
from orders.lane import points, resolver, sender, tracker
from orders.lane.context import Lane, log
from orders.lane.recorder import GroupRecorder
from orders.lane.sweep import Sweeper
from orders.machine import ACTIVE, IN_DOUBT, Event, State
from orders.models import Intent, Market
from venues.gateway import ConnectError

TICK_S = 0.2  # how often the pump looks without being woken: back-offs and dates have no wake-up
CLOCK_EVERY_S = 30.0
CONNECT_BACKOFF_S = (0.5, 1.0, 2.0, 5.0)
UNREACHABLE_ALERT_S = 15.0
DRAIN_S = 5.0
HEAR_OUT_S = 1.0


Look = Callable[[Lane, int], Coroutine[Any, Any, None]]


class Drive:
    """Runs a lane. `run` ends when the lane is told to stop or loses its lease."""

    def __init__(self, lane: Lane, *, recovery_due: bool) -> None:
        self.lane = lane
        self.recorder = GroupRecorder(lane)
        lane.recorder = self.recorder
        self.tracker = tracker.Tracker(lane)
        self.sweeper = Sweeper(lane)
        self._recovery_due = recovery_due
        self._resolving: dict[int, asyncio.Task[None]] = {}
        self._looked_at: dict[int, datetime] = {}
        self._lost: LeaseLostError | None = None

    async def run(self) -> bool:
        """Drive until told to stop. Returns whether the hand-over is clean."""
        writer = asyncio.create_task(self.recorder.run())
        try:
            if not await self._connect():
                return False
            await self._load()
            if self._recovery_due:
                await self._recover()
            self.lane.spawn(tracker.listen(self.lane), "stream")
            self.lane.spawn(self.tracker.run(), "track")
            self.lane.spawn(self._sweep(), "sweep")
            self.lane.spawn(self._keep_clock(), "clock")
            await self._pump()
            return await self._drain()
        finally:
            self.lane.ending = True
            await self._hear_out()
            for task in list(self.lane.tasks):
                task.cancel()
            await asyncio.gather(*self.lane.tasks, return_exceptions=True)
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)
            await self.lane.gateway.close()

    async def _hear_out(self) -> None:
        """A fact is a fact: answers that are here, or almost, are kept even without the lease."""
        if self.lane.sends:
            await asyncio.wait(set(self.lane.sends), timeout=HEAR_OUT_S)

    async def _connect(self) -> bool:
        """Load the venue's rules and its clock; without them nothing can be sent or judged."""
        began, tries = self.lane.clock.monotonic(), 0
        while not self.lane.stopping:
            await self.lane.wait_limit()
            try:
                rules = {info.symbol: info for info in await self.lane.gateway.connect()}
                if await self.lane.learn_clock():
                    account_id = self.lane.account.pk
                    await self.lane.database.run(partial(accounts.learn_rules, account_id, rules))
                    await self._unreachable("", over=True)
                    return True
                reason = "the venue's clock did not answer"
            except ConnectError as error:
                reason = str(error)
            log.warning("venue_unreachable", account=self.lane.account.name, reason=reason)
            if self.lane.clock.monotonic() - began > UNREACHABLE_ALERT_S:
                await self._unreachable(reason, over=False)
                began = float("inf")
            await self.lane.database.run(self._end_stale)
            delay = CONNECT_BACKOFF_S[min(tries, len(CONNECT_BACKOFF_S) - 1)]
            tries += 1
            await self.lane.clock.sleep(delay)
        return False

    def _end_stale(self) -> None:
        """Waiting decisions go out of date also while the venue is away."""
        now = self.lane.clock.now()
        if journal.waiting(self.lane.account.pk, now):
            window = Window(0, now, 0.0, None, self.lane.account.timeout_ms)
            journal.claim(self.lane.hold, window, actor=self.lane.actor)

    async def _unreachable(self, reason: str, *, over: bool) -> None:
        lane = self.lane
        draft = AlertDraft(
            kind="venue_unreachable",
            topic=f"venue_unreachable:{lane.account.pk}",
            severity="critical",
            message=f"{lane.account.name}: the venue cannot be reached: {reason}",
            remedy="Nothing is sent for this account. Check the network, base_url and credentials.",
            account_id=lane.account.pk,
        )
        at = lane.clock.now()
        if over:
            await lane.database.run(
                lambda: journal.resolve_topic(
                    draft.topic, actor=lane.actor, reason="the venue answers again", at=at
                )
            )
        else:
            await lane.database.run(lambda: journal.raise_alert(draft, actor=lane.actor, at=at))

    async def _load(self) -> None:
        account_id = self.lane.account.pk
        rows = Intent.objects.filter(account_id=account_id, state__in=ACTIVE).order_by("pk")
        self.lane.book.keep(await self.lane.database.run(lambda: list(rows)))

    async def _recover(self) -> None:
        """One pass over everything that is not at its end, before anything new is sent."""
        lane = self.lane
        orphaned = lane.book.having(State.IN_FLIGHT, State.RECONCILING)
        await self._write_each(
            [
                Change(
                    intent.pk,
                    Event.OWNER_LOST,
                    expect=frozenset({State(intent.state)}),
                    reason="the lane that drove it is gone",
                )
                for intent in orphaned
            ]
        )
        doubtful, waiting = lane.book.having(*IN_DOUBT), lane.book.having(State.INTENT)
        markets = await lane.database.run(self.sweeper.markets)
        for market in markets:
            await self.sweeper.sweep(market, everything=True)
        summary = (
            f"{len(orphaned)} without an owner, {len(doubtful)} in doubt, {len(waiting)} waiting, "
            f"{len(markets)} markets asked"
        )
        await lane.database.run(
            lambda: journal.take_recovered(lane.hold, at=lane.clock.now(), summary=summary)
        )

    async def _write_each(self, changes: list[Change]) -> None:
        results = await asyncio.gather(
            *(self.recorder.write(change) for change in changes), return_exceptions=True
        )
        for change, result in zip(changes, results, strict=True):
            if isinstance(result, LeaseLostError):
                raise result
            if isinstance(result, Exception):
                intent = self.lane.book.get(change.intent_id)
                if intent is not None:
                    await self._halt_broken(intent, result)

    async def _halt_broken(self, intent: Intent, error: Exception) -> None:
        log.error("intent_broken", client_order_id=intent.client_order_id, exc_info=error)
        text = f"{intent.client_order_id} cannot be handled: {type(error).__name__}: {error}"
        await self.recorder.write(halts=[Halt(intent.market_id, text, intent_id=intent.pk)])

    async def _pump(self) -> None:
        """Claim what waits, look where asked, until told to stop. Woken by every commit."""
        lane = self.lane
        while not lane.stopping:
            if lane.clock.monotonic() >= lane.deadline():
                raise LeaseLostError(f"lease of {lane.account.name} ran out")
            if self._lost is not None:
                raise self._lost
            lane.wake.clear()
            await self._resolve_doubtful()
            waits, asked = await lane.database.run(self._notice)
            self._nudge(asked)
            if waits and not lane.limited:
                await self._claim()
            await self._wait()

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(TICK_S):
                await self.lane.wake.wait()
        except TimeoutError:
            pass

    def _notice(self) -> tuple[bool, list[Market]]:
        """What other processes committed that concerns this lane."""
        account_id = self.lane.account.pk
        asked = list(Market.objects.filter(account_id=account_id, look_requested_at__isnull=False))
        cancels = Intent.objects.filter(
            account_id=account_id, state__in=ACTIVE, cancel_requested_at__isnull=False
        )
        self.lane.book.keep(cancels)
        return journal.waiting(account_id, self.lane.clock.now()), asked

    def _nudge(self, asked: list[Market]) -> None:
        for market in asked:
            if self._looked_at.get(market.pk) != market.look_requested_at:
                self._looked_at[market.pk] = market.look_requested_at or self.lane.clock.now()
                self.tracker.polled_at.pop(market.symbol, None)
                if (nudge := self.lane.nudges.pop(market.pk, None)) is not None:
                    nudge.set()

    async def _claim(self) -> None:
        lane = self.lane
        now = lane.clock.now()
        profile = lane.gateway.profile
        window = Window(
            limit=lane.limiter.orders_left(),
            at=now,
            offset_ms=lane.venue_clock.offset_ms(now),
            expiry_ms=lane.account.request_expiry_ms if profile.expiry else None,
            timeout_ms=lane.account.timeout_ms + sender.ANSWER_GRACE_MS,
        )
        claimed = await lane.database.run(
            lambda: journal.claim(lane.hold, window, actor=lane.actor)
        )
        lane.book.keep(claimed.intents)
        if claimed:
            points.reach(Event.CLAIMED.value)
        for intent in claimed.intents:
            lane.limiter.order_sent()
            task = lane.spawn(self._send(intent, window), f"send:{intent.client_order_id}")
            lane.sends.add(task)

    async def _send(self, intent: Intent, window: Window) -> None:
        try:
            await sender.send(self.lane, intent, window)
        except LeaseLostError:
            return
        except Exception as error:
            log.exception("send_failed", client_order_id=intent.client_order_id)
            await self.recorder.write(
                Change(
                    intent.pk,
                    Event.NO_ANSWER,
                    expect=frozenset({State.IN_FLIGHT}),
                    attempt=intent.attempt,
                    reason=f"the send broke: {type(error).__name__}: {error}",
                )
            )

    async def _resolve_doubtful(self) -> None:
        for intent in self.lane.book.having(*IN_DOUBT):
            self._look_for(intent, resolver.resolve)
        if self.lane.account.restored_at is not None:
            for intent in await self.lane.database.run(self._to_look_for):
                self._look_for(intent, resolver.prove_first)

    def _to_look_for(self) -> list[Intent]:
        return journal.to_look_for(self.lane.account)

    def _look_for(self, intent: Intent, how: Look) -> None:
        if intent.pk not in self._resolving:
            self.lane.book.keep([intent])
            work = self._resolve(intent.pk, how)
            task = self.lane.spawn(work, f"look:{intent.client_order_id}")
            self._resolving[intent.pk] = task
            task.add_done_callback(partial(self._resolved, intent.pk))

    def _resolved(self, intent_id: int, _: asyncio.Task[None]) -> None:
        self._resolving.pop(intent_id, None)

    async def _resolve(self, intent_id: int, how: Look) -> None:
        try:
            await how(self.lane, intent_id)
        except LeaseLostError:
            return
        except Exception as error:
            intent = self.lane.book.get(intent_id)
            if intent is not None:
                await self._halt_broken(intent, error)
            await self.lane.clock.sleep(resolver.HALTED_BACKOFF_S)

    async def _sweep(self) -> None:
        """Ends with the lane's lease, and ends the lane where an orphan was found."""
        try:
            await self.sweeper.run()
        except LeaseLostError as error:
            self._lost = error
            self.lane.wake.set()

    async def _keep_clock(self) -> None:
        while True:
            await self.lane.clock.sleep(CLOCK_EVERY_S)
            if not self.lane.limited:
                await self.lane.limiter.request()
                await self.lane.learn_clock()

    async def _drain(self) -> bool:
        """Wait for the answers that are out; what has none by then is in doubt, on the record."""
        lane = self.lane
        if lane.sends:
            await asyncio.wait(set(lane.sends), timeout=DRAIN_S)
        unanswered = lane.book.having(State.IN_FLIGHT)
        await self._write_each(
            [
                Change(
                    intent.pk,
                    Event.NO_ANSWER,
                    expect=frozenset({State.IN_FLIGHT}),
                    attempt=intent.attempt,
                    reason="the lane stopped before an answer came",
                )
                for intent in unanswered
            ]
        )
        return not lane.book.having(*IN_DOUBT, State.IN_FLIGHT)
