"""One lane process: holds leases, renews them, drives their accounts, hands them over."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import structlog
from django.db import DatabaseError, close_old_connections

from orders import journal
from orders.clock import Clock
from orders.journal import LEASE_S, Hold, LeaseLostError
from orders.lane.context import Database, Lane, ThreadDatabase
from orders.lane.drive import Drive
from orders.models import Account, LaneProcess
from orders.prepared import Prepared
from orders.wake import Watcher
from venues.gateway import Gateway, VenueSettings

log = structlog.get_logger(__name__)

RENEW_S = 0.5
STANDBY_S = 0.25  # how often a standby looks without being woken
RETAKE_S = 1.0  # pause before an account that failed is taken again


_ACCOUNT: Prepared[Account] = Prepared(lambda pk: Account.objects.filter(pk=pk))


def _owner() -> str:
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"


class StopSignal(Protocol):
    """Tells the lane to stop; see `orders.lane.stop`."""

    def start(self, loop: asyncio.AbstractEventLoop, stop: Callable[[str], None]) -> None: ...


class Watching(Protocol):
    """Calls back after commits to the journal; see `orders.wake`."""

    def start(self) -> None: ...

    def stop(self) -> None: ...


@dataclass
class Held:
    """An account that this process drives."""

    hold: Hold
    deadline: float  # monotonic seconds, counted from before the renewal was asked
    lane: Lane | None = None
    task: asyncio.Task[None] | None = None

    def end(self) -> None:
        """Cancel it, unless it cleans up already: a second cancel would interrupt that."""
        if self.task is not None and (self.lane is None or not self.lane.ending):
            self.task.cancel()


@dataclass
class Runner:
    """`run` returns when the slice is over or a stop is asked for, with every lease given back."""

    venues: Mapping[str, VenueSettings]
    make_gateway: Callable[[VenueSettings], Gateway]
    clock: Clock
    stop_signal: StopSignal
    slice_s: float = 600.0
    owner: str = field(default_factory=_owner)
    make_database: Callable[[str], Database] = ThreadDatabase
    make_watcher: Callable[[Callable[[], None]], Watching] = Watcher

    def __post_init__(self) -> None:
        self._held: dict[int, Held] = {}
        self._not_before: dict[int, float] = {}
        self._wake = asyncio.Event()
        self._stop_reason = ""
        self._leases = self.make_database("leases")
        self._process = LaneProcess(
            owner=self.owner,
            host=socket.gethostname(),
            pid=os.getpid(),
            started_at=self.clock.now(),
        )

    async def run(self) -> str:
        """Drive accounts; returns why it ended."""
        loop = asyncio.get_running_loop()
        watcher = self.make_watcher(lambda: _threadsafe(loop, self._woken))
        watcher.start()
        self.stop_signal.start(loop, self.stop)
        renewing = asyncio.create_task(self._renew_forever())
        log.info("lane_started", owner=self.owner)
        try:
            ends_at = self.clock.monotonic() + self.slice_s
            while not self._stop_reason:
                await self._take_free()
                await self._wait()
                if self.clock.monotonic() >= ends_at and await self._may_end():
                    self.stop("slice over")
            await self._hand_over()
        finally:
            renewing.cancel()
            await asyncio.gather(renewing, return_exceptions=True)
            watcher.stop()
            await self._leases.run(partial(journal.forget_process, self.owner))
        log.info("lane_ended", owner=self.owner, reason=self._stop_reason)
        return self._stop_reason

    async def _may_end(self) -> bool:
        """A lane that holds accounts goes on until a younger one is there to take them."""
        if not self._held:
            return True
        try:
            return await self._leases.run(partial(journal.younger_lane, self._process))
        except DatabaseError as error:
            await self._database_lost("slice", error)
            return False

    def stop(self, reason: str) -> None:
        """Stop claiming, drain, release, return."""
        self._stop_reason = self._stop_reason or reason
        for held in self._held.values():
            if held.lane is not None:
                held.lane.stopping = True
        self._woken()

    def _woken(self) -> None:
        self._wake.set()
        for held in self._held.values():
            if held.lane is not None:
                held.lane.wake.set()

    async def _wait(self) -> None:
        self._wake.clear()
        try:
            async with asyncio.timeout(STANDBY_S):
                await self._wake.wait()
        except TimeoutError:
            pass

    async def _take_free(self) -> None:
        """Take free accounts, up to a fair share of all."""
        try:
            free = await self._leases.run(journal.free_accounts)
            wanted = [pk for pk in free if pk not in self._held and self._may_take(pk)]
            if not wanted:
                return
            share = await self._leases.run(journal.fair_share)
            for account_id in wanted[: max(0, share - len(self._held))]:
                await self._take(account_id)
        except DatabaseError as error:
            await self._database_lost("take", error)

    def _may_take(self, account_id: int) -> bool:
        return self._not_before.get(account_id, 0.0) <= self.clock.monotonic()

    async def _take(self, account_id: int) -> None:
        asked_at = self.clock.monotonic()
        taken = await self._leases.run(
            partial(journal.take, account_id, owner=self.owner, at=self.clock.now())
        )
        if taken is None:
            return
        hold, recovery_due = taken
        held = Held(hold, asked_at + LEASE_S)
        self._held[account_id] = held
        held.task = asyncio.create_task(self._drive(held, recovery_due))

    async def _drive(self, held: Held, recovery_due: bool) -> None:
        """Drive one account until told to stop, then give the lease back."""
        clean = False
        database = self.make_database(f"journal-{held.hold.account_id}")
        try:
            (account,) = await database.run(partial(_ACCOUNT.rows, held.hold.account_id))
            venue = self.venues[account.name]
            held.lane = Lane(
                account=account,
                hold=held.hold,
                gateway=self.make_gateway(venue),
                clock=self.clock,
                database=database,
                deadline=lambda: held.deadline,
            )
            held.lane.stopping = bool(self._stop_reason)
            clean = await Drive(held.lane, recovery_due=recovery_due).run()
        except LeaseLostError as error:
            log.warning("lease_lost", account_id=held.hold.account_id, reason=str(error))
        except asyncio.CancelledError:
            log.warning("lane_cancelled", account_id=held.hold.account_id)
        except Exception:
            log.exception("lane_failed", account_id=held.hold.account_id)
        finally:
            database.close()
            await self._give_back(held, clean)

    async def _give_back(self, held: Held, clean: bool) -> None:
        account_id = held.hold.account_id
        try:
            await self._leases.run(
                partial(journal.release, held.hold, clean=clean, at=self.clock.now())
            )
        except DatabaseError as error:
            await self._database_lost("release", error)
        finally:  # also when cancelled: an account that stays in here is never taken again
            self._held.pop(account_id, None)
            self._not_before[account_id] = self.clock.monotonic() + RETAKE_S
            self._woken()

    async def _renew_forever(self) -> None:
        while True:
            try:
                await self._renew()
            except DatabaseError as error:
                await self._database_lost("renew", error)
            self._end_overdue()
            await self.clock.sleep(RENEW_S)

    async def _renew(self) -> None:
        asked_at = self.clock.monotonic()
        holds = [held.hold for held in self._held.values()]
        kept = await self._leases.run(partial(journal.renew, holds, process=self._process))
        for hold in holds:
            held = self._held.get(hold.account_id)
            if held is None or held.hold != hold:
                continue
            if hold in kept:
                held.deadline = asked_at + LEASE_S
            else:
                held.end()

    def _end_overdue(self) -> None:
        """A lease that could not be renewed in time is somebody else's by now."""
        for held in self._held.values():
            if held.deadline <= self.clock.monotonic():
                held.end()

    async def _hand_over(self) -> None:
        tasks = [held.task for held in self._held.values() if held.task is not None]
        if tasks:
            await asyncio.wait(tasks)

    async def _database_lost(self, during: str, error: Exception) -> None:
        log.warning("database_unavailable", during=during, error=str(error))
        await self._leases.run(close_old_connections)
        await self.clock.sleep(RENEW_S)


def _threadsafe(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(call)
