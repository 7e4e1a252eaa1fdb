"""Lets calls wait for the journal without asking the database until there is something new.

One watcher and one reading thread, with one connection each, serve all waiting calls of a process,
so that a hundred of them cost the database no more than one.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import TypeVar

from asgiref.sync import sync_to_async
from django.db import InterfaceError, OperationalError, connection

from orders.api.problems import ProblemError
from orders.wake import Watcher

MAX_FOLLOWERS = 200  # waiting calls of one process

T = TypeVar("T")


class Wakeups:
    """Counts commits; coroutines of any event loop wait for the count to move on."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._waiters: set[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = set()
        self._watcher: Watcher | None = None

    def now(self) -> int:
        """The count. Read it before the journal, so that nothing falls between the two."""
        with self._lock:
            if self._watcher is None or not self._watcher.is_alive():
                self._watcher = Watcher(self._changed)
                self._watcher.start()
            return self._count

    async def after(self, seen: int, timeout_s: float) -> int:
        """Return as soon as the count is not `seen` any more, at the latest after timeout_s."""
        loop = asyncio.get_running_loop()
        waiter = (loop, loop.create_future())
        with self._lock:
            if self._count != seen:
                return self._count
            self._waiters.add(waiter)
        try:
            await asyncio.wait([waiter[1]], timeout=timeout_s)
        finally:
            with self._lock:
                self._waiters.discard(waiter)
        return self.now()

    def _changed(self) -> None:
        """On the watcher's thread."""
        with self._lock:
            self._count += 1
            waiters, self._waiters = self._waiters, set()
        for loop, future in waiters:
            with suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(_wake, future)


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


WAKEUPS = Wakeups()

_reader = ThreadPoolExecutor(1, thread_name_prefix="journal-reader")
_followers = 0


async def read(ask: Callable[[], T]) -> T:
    """Run a query on the reading thread, whose connection stays open between calls."""
    return await asyncio.get_running_loop().run_in_executor(_reader, _twice, ask)


def _twice(ask: Callable[[], T]) -> T:
    """A connection that was lost since the last query is opened anew."""
    try:
        return ask()
    except (InterfaceError, OperationalError):
        connection.close()
        return ask()


async def get_ready() -> None:
    """Before a call waits: let go of the database. Raises ProblemError 503 where too many wait."""
    if _followers >= MAX_FOLLOWERS:
        detail = f"{MAX_FOLLOWERS} calls wait here already; try again soon"
        raise ProblemError(503, "busy", detail)
    await sync_to_async(_release)()


def _release() -> None:
    """The connection belongs to the request's thread, and would stay open as long as the call."""
    connection.close()


@contextmanager
def place() -> Iterator[None]:
    """Hold a place while waiting."""
    global _followers
    _followers += 1
    try:
        yield
    finally:
        _followers -= 1
