"""One account, from taking its lease to giving it back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from django.db import DatabaseError

from orders import journal
from orders.journal import Change, Halt, LeaseLostError, Window
from orders.lane import ageing, points, resolver, sender, tracker
from orders.lane.connect import connect
from orders.lane.context import Lane, log
from orders.lane.recorder import GroupRecorder
from orders.lane.sweep import Sweeper
from orders.lane.watch import Watch
from orders.machine import ACTIVE, IN_DOUBT, Event, State
from orders.models import Intent, Market
from orders.prepared import Prepared

TICK_S = 0.2  # how often the pump looks without being woken: back-offs and dates have no wake-up
CLOCK_EVERY_S = 30.0
RESTART_S = 1.0
DRAIN_S = 5.0
HEAR_OUT_S = 1.0


_ACTIVE: Prepared[Intent] = Prepared(
    lambda account_id: Intent.objects.filter(account_id=account_id, state__in=ACTIVE).order_by("pk")
)
_ASKED: Prepared[Market] = Prepared(
    lambda account_id: Market.objects.filter(account_id=account_id, look_requested_at__isnull=False)
)
_CANCELS: Prepared[Intent] = Prepared(
    lambda account_id: Intent.objects.filter(
        account_id=account_id, state__in=ACTIVE, cancel_requested_at__isnull=False
    )
)

T = TypeVar("T")
Look = Callable[[Lane, int], Coroutine[Any, Any, None]]


class Drive:
    """Runs a lane. `run` ends when the lane is told to stop or loses its lease."""

    def __init__(self, lane: Lane, *, recovery_due: bool) -> None:
        self.lane = lane
        self.recorder = GroupRecorder(lane)
        lane.recorder = self.recorder
        self.tracker = tracker.Tracker(lane)
        self.sweeper = Sweeper(lane)
        self.watch = Watch(lane, self.sweeper)
        self._recovery_due = recovery_due
        self._resolving: dict[int, asyncio.Task[None]] = {}
        self._looked_at: dict[int, datetime] = {}
        self._lost: LeaseLostError | None = None

    async def run(self) -> bool:
        """Drive until told to stop. Returns whether the hand-over is clean."""
        writer = self.lane.spawn(self._write(), "journal")
        try:
            await self._load()
            if self._recovery_due:
                await self._disown()
            self._keep_up(partial(ageing.watch, self.lane), "age")
            if not await self._stop_or(connect(self.lane)):
                return False
            if self._recovery_due:
                await self._stop_or(self._recover())
            self._keep_up(partial(tracker.listen, self.lane), "stream")
            self._keep_up(self.tracker.run, "track")
            self._keep_up(self.sweeper.run, "sweep")
            self._keep_up(self.watch.run, "watch")
            self._keep_up(self._keep_clock, "clock")
            await self._pump()
            return await self._drain()
        finally:
            self.lane.ending = True
            await self._hear_out()
            writer.cancel()
            for task in list(self.lane.tasks):
                task.cancel()
            await asyncio.gather(*self.lane.tasks, return_exceptions=True)
            await self.lane.gateway.close()

    async def _write(self) -> None:
        """Without its writer a lane can record nothing: it ends."""
        try:
            await self.recorder.run()
        except Exception as error:
            log.exception("recorder_failed", account=self.lane.account.name)
            self._lose(LeaseLostError(f"the recorder failed: {error}"))

    def _lose(self, error: LeaseLostError) -> None:
        self._lost = self._lost or error
        self.lane.wake.set()

    def _keep_up(self, work: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
        """Run it beside the lane for ever: a failure is logged and it starts again."""

        async def again() -> None:
            while True:
                try:
                    await work()
                    return
                except LeaseLostError as error:
                    self._lose(error)
                    return
                except Exception:
                    log.exception("lane_part_failed", account=self.lane.account.name, part=name)
                    await self.lane.clock.sleep(RESTART_S)

        self.lane.spawn(again(), name)

    async def _stop_or(self, work: Coroutine[Any, Any, T]) -> T | None:
        """The result of the work; None where the lane is told to stop, or its lease is lost."""
        task = asyncio.ensure_future(work)
        try:
            while not task.done() and not self.lane.stopping and self._lost is None:
                await self._wait(task)
            if self._lost is not None:
                raise self._lost
            return task.result() if task.done() else None
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _hear_out(self) -> None:
        """A fact is a fact: answers that are here, or almost, are kept even without the lease."""
        if self.lane.sends:
            await asyncio.wait(set(self.lane.sends), timeout=HEAR_OUT_S)

    async def _load(self) -> None:
        account_id = self.lane.account.pk
        self.lane.book.keep(await self.lane.database.run(partial(_ACTIVE.rows, account_id)))

    async def _disown(self) -> None:
        """What the former lane had in hand is in doubt, also while the venue is away."""
        await self._write_each(
            [
                Change(
                    intent.pk,
                    Event.OWNER_LOST,
                    expect=frozenset({State(intent.state)}),
                    reason="the lane that drove it is gone",
                )
                for intent in self.lane.book.having(State.IN_FLIGHT, State.RECONCILING)
            ]
        )

    async def _recover(self) -> None:
        """One pass over everything that is not at its end, before anything new is sent.

        A market whose orders could not all be listed stays closed; the sweeper goes on asking.
        """
        lane = self.lane
        doubtful, waiting = lane.book.having(*IN_DOUBT), lane.book.having(State.INTENT)
        markets = await lane.database.run(self.sweeper.markets)
        seen = 0
        for market in markets:
            seen += await self.sweeper.look_over(market)
        summary = (
            f"{len(doubtful)} in doubt, {len(waiting)} waiting, "
            f"{seen} of {len(markets)} markets looked over"
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
        halt = Halt(intent.market_id, text, kind="broken", intent_id=intent.pk)
        await self.recorder.write(halts=[halt])

    async def _pump(self) -> None:
        """Claim what waits, look where asked, until told to stop. Woken by every commit."""
        lane = self.lane
        while not lane.stopping:
            if lane.clock.monotonic() >= lane.deadline():
                raise LeaseLostError(f"lease of {lane.account.name} ran out")
            if self._lost is not None:
                raise self._lost
            await self._resolve_doubtful()
            waits, asked, cancels = await lane.database.run(self._notice)
            lane.book.keep(cancels)
            self._nudge(asked)
            if waits and not lane.limited:
                await self._claim()
            await self._rest()

    async def _rest(self) -> None:
        """Until a wake-up or the next tick."""
        try:
            async with asyncio.timeout(TICK_S):
                await self.lane.wake.wait()
        except TimeoutError:
            pass
        self.lane.wake.clear()

    async def _wait(self, other: asyncio.Future[Any]) -> None:
        """Until the other is done, a wake-up or the next tick."""
        waking = asyncio.ensure_future(self.lane.wake.wait())
        try:
            await asyncio.wait({waking, other}, timeout=TICK_S, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waking.cancel()
        self.lane.wake.clear()

    def _notice(self) -> tuple[bool, list[Market], list[Intent]]:
        """What other processes committed that concerns this lane."""
        account_id = self.lane.account.pk
        asked, cancels = _ASKED.rows(account_id), _CANCELS.rows(account_id)
        return journal.waiting(account_id, self.lane.clock.now()), asked, cancels

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
            log.exception("look_failed", intent=intent_id)
            intent = self.lane.book.get(intent_id)
            if intent is not None and not isinstance(error, DatabaseError):
                await self._halt_broken(intent, error)
            await self.lane.clock.sleep(resolver.HALTED_BACKOFF_S)

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
