"""The venue's pushes about our orders: a queue, and a task that keeps ccxt's socket open."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any

import structlog

from venues.gateway import OrderReport

log = structlog.get_logger(__name__)

KEEPER = "venue-stream"
FIRST_PAUSE_S = 0.25
LONGEST_PAUSE_S = 15.0
STEADY_S = 30.0  # a connection that held so long starts the pauses anew
MOST_WAITING = 10_000  # pushes; the oldest go first, for the stream is a hint


class Stream:
    """One reader's view. Ends by close() or with the iterator, never by a failure."""

    def __init__(
        self,
        client: Any,
        read: Callable[[Any], OrderReport],
        describe: Callable[[BaseException], str],
    ) -> None:
        self._client = client
        self._read = read
        self._describe = describe
        self._waiting: deque[Any] = deque(maxlen=MOST_WAITING)
        self._news = asyncio.Event()
        self.closed = False

    def put(self, event: Any) -> None:
        self._waiting.append(event)
        self._news.set()

    def close(self) -> None:
        self.closed = True
        self._news.set()

    async def reports(self) -> AsyncIterator[OrderReport]:
        keeper = asyncio.create_task(self._keep_open(), name=KEEPER)
        try:
            while not self.closed:
                await self._news.wait()
                self._news.clear()
                while self._waiting and not self.closed:
                    report = self._try_read(self._waiting.popleft())
                    if report is not None:
                        yield report
        finally:
            self.closed = True
            keeper.cancel()
            await asyncio.wait([keeper])

    def _try_read(self, event: Any) -> OrderReport | None:
        try:
            return self._read(event)
        except Exception as error:
            log.warning("push_unreadable", error=self._describe(error))
            return None

    async def _keep_open(self) -> None:
        """Subscribe; when the connection ends, subscribe again, a little later each time."""
        pause_s = FIRST_PAUSE_S
        while not self.closed:
            began = time.monotonic()
            try:
                # No event gets this far (see client.py), so it waits for the connection to end.
                await self._client.watch_orders()
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if self.closed or task is None or task.cancelling():
                    raise
                # ccxt cancels its waiters when it drops a connection by itself.
                log.info("stream_lost", error="the connection was dropped")
            except Exception as error:
                log.info("stream_lost", error=self._describe(error))
            if time.monotonic() - began > STEADY_S:
                pause_s = FIRST_PAUSE_S
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
