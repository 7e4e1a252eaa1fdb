"""The journal on SQLite in memory, with faults before and after every commit."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from random import Random
from typing import Any, ClassVar, TypeVar

from django.core.management import call_command
from django.db import OperationalError, connection

from orders import accounts, journal
from orders.lane.drive import Drive
from orders.machine import ACTIVE
from orders.models import Desk
from tests.simulation import speed
from tests.simulation.clocks import MachineClock
from tests.simulation.loop import Process, VirtualLoop
from tests.simulation.network import OPENING_S
from tests.simulation.plan import ACCOUNT, Faults, settings_of

T = TypeVar("T")

# What polls, and a statement that counts what it would find.
_NOTHING: dict[Any, str] = {
    Drive._notice: (
        "SELECT (SELECT count(*) FROM orders_intent WHERE state = 'INTENT' OR"
        " cancel_requested_at IS NOT NULL AND state IN"
        f" ({', '.join(repr(state.value) for state in sorted(ACTIVE))}))"
        " + (SELECT count(*) FROM orders_market WHERE look_requested_at IS NOT NULL)"
    ),
    journal.free_accounts: (
        "SELECT count(*) FROM orders_lease WHERE owner = '' OR deadline IS NULL OR deadline <= :now"
    ),
}


class Server:
    """The one database that all processes share. Its clock is its own."""

    running: ClassVar[Server]

    def __init__(self, loop: VirtualLoop, clock: MachineClock, random: Random, faults: Faults):
        self.loop, self.clock, self.random, self.faults = loop, clock, random, faults
        Server.running = self
        self.peace = False
        self.other_stalls = 1.0  # how often other calls stall than claims, in a claim's fourths
        self._skipped = 0
        self._nothing: dict[Any, Any] = {}  # what the real answer is when there is nothing
        self.watchers: list[Callable[[], None]] = []
        self.commits: list[tuple[float, int | None]] = [(0.0, None)]  # true time, last line
        self.raw: Any = connection.connection

    def now(self) -> str:
        """What SQLite tells of the time."""
        return self.clock.now().isoformat(" ", "milliseconds")[:23]

    @property
    def calm(self) -> bool:
        """No faults: it is over, or the first lane still begins."""
        return self.peace or self.loop.time() < OPENING_S

    def call(self, work: Callable[[], T]) -> T:
        """Run it as in a thread of its own; who watches for commits is told a little later."""
        before = self.raw.total_changes
        try:
            return work()
        finally:
            if self.raw.total_changes != before:
                self._committed()

    def answer(self, work: Callable[[], T]) -> T:
        """Like `call`. Where a cheap statement shows that there is nothing, it is not asked again.

        Polling makes up most of what a lane asks for. One answer in fifty is compared.
        """
        polls = getattr(work, "__func__", work)
        statement = _NOTHING.get(polls)
        if statement is None:
            return self.call(work)
        given = {"now": self.now()} if ":now" in statement else {}
        (count,) = self.raw.execute(statement, given).fetchone()
        if count:
            return self.call(work)
        self._skipped += 1
        if polls not in self._nothing or self._skipped % 50 == 0:
            asked = self.call(work)
            nothing = self._nothing.setdefault(polls, asked)
            assert asked == nothing, f"{polls}: {asked} although there is nothing"
        return self._nothing[polls]  # type: ignore[no-any-return]

    def put_back(self, image: bytes, lines: int) -> None:
        """The journal is what it was when it had so many commits."""
        restore(image)
        self.watchers.clear()
        del self.commits[lines:]

    def _committed(self) -> None:
        (top,) = self.raw.execute("SELECT max(id) FROM orders_transition").fetchone()
        if top != self.commits[-1][1]:
            self.commits.append((self.loop.time(), top))
        for woken in self.watchers:
            if self.peace or self.random.random() < 0.9:
                self.loop.later(self.random.uniform(0.001, 0.004), woken)


class Connection:
    """`orders.lane.context.Database`: one thread of one process, one call after the other.

    A call that has begun goes on when its caller is cancelled, as in a thread.
    """

    def __init__(self, server: Server, process: Process) -> None:
        self._server, self._process = server, process
        self._free_at = 0.0

    async def run(self, call: Callable[[], T]) -> T:
        loop, _server = self._server.loop, self._server
        future: asyncio.Future[T] = loop.create_future()
        begins = max(loop.time(), self._free_at) + self._takes_s(call)
        self._free_at = begins
        loop.call_at(begins, self._execute, call, future)
        return await future

    def close(self) -> None:
        pass

    def _takes_s(self, call: Callable[[], object]) -> float:
        """Stalls hit claims most: a claim's age is what the expiry must cover."""
        server = self._server
        claims = "_claim" in getattr(call, "__qualname__", "")
        share = server.faults.stall * (4 if claims else server.other_stalls)
        if not server.calm and server.random.random() < share:
            return server.random.uniform(0.3, 3.0)
        return server.random.uniform(0.0002, 0.002)

    def _execute(self, call: Callable[[], T], future: asyncio.Future[T]) -> None:
        server, process = self._server, self._process
        if process.starved and getattr(call, "func", None) is journal.renew and not server.peace:
            server.loop.call_later(0.2, self._execute, call, future)
            return
        if future.cancelled() and server.random.random() < 0.5:
            return  # it had not begun
        process.calls += 1
        if process.calls == process.crash_before_call:
            process.crash()  # a transaction in progress is rolled back
            return
        failing = not server.calm and server.random.random() < server.faults.database
        try:
            if failing and server.random.random() < 0.5:
                raise OperationalError("the database went away before the commit")
            result = server.answer(call)
            if failing:
                raise OperationalError("the database went away after the commit")
        except Exception as error:
            if not future.done():
                future.set_exception(error)
            return
        if process.calls == process.crash_after_call:
            process.crash()
        elif not future.done():
            future.set_result(result)


class Watcher:
    """Calls back after commits."""

    def __init__(self, server: Server, process: Process, woken: Callable[[], None]) -> None:
        self._server, self._process, self._woken = server, process, woken

    def start(self) -> None:
        self._server.watchers.append(self._changed)

    def stop(self) -> None:
        self._server.watchers.remove(self._changed)

    def _changed(self) -> None:
        if self._process.alive and not self._process.frozen:
            self._server.loop.call_soon(self._woken, context=self._process.context)


def create() -> bytes:
    """The image of a migrated, empty journal."""
    call_command("migrate", verbosity=0)
    speed.install()
    # SQLite's own function, asked by the journal for the time: here it is simulated.
    connection.connection.create_function("strftime", 2, lambda *_: Server.running.now())
    Desk.objects.update(prefix="simd")
    accounts.sync({ACCOUNT: settings_of(5000, 3000)})
    image: bytes = connection.connection.serialize()
    return image


def restore(image: bytes) -> None:
    """Copied, so that the journal is SQLite's own memory and not a file that is kept there."""
    kept = sqlite3.connect(":memory:")
    kept.deserialize(image)
    kept.backup(connection.connection)
    kept.close()
