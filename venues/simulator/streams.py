"""Who listens to the order stream, and what of it gets lost on purpose."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable

from venues.simulator.faults import Plan
from venues.simulator.orders import Event

MAX_QUEUE = 100_000  # events that a client may leave unread before it is cut off

Render = Callable[[Event], str]


class Subscriber:
    """One subscription: what is to be sent, in order. None ends the connection."""

    def __init__(self, render: Render) -> None:
        self.render = render
        self.queue: asyncio.Queue[str | None] = asyncio.Queue()


class Streams:
    """Hands every event of the engine to every subscriber, unless a fault says otherwise."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._subscribers: list[Subscriber] = []
        self._silent_until_s = 0.0  # monotonic
        self.sent = self.lost = 0

    @property
    def count(self) -> int:
        return len(self._subscribers)

    def join(self, subscriber: Subscriber) -> None:
        self._subscribers.append(subscriber)

    def leave(self, subscriber: Subscriber) -> None:
        with contextlib.suppress(ValueError):
            self._subscribers.remove(subscriber)

    def silence(self, for_s: float) -> None:
        """Stay connected and lose every event, from now on, for so long."""
        self._silent_until_s = time.monotonic() + for_s

    def drop_all(self) -> None:
        """Close every connection."""
        for subscriber in list(self._subscribers):
            subscriber.queue.put_nowait(None)
            self.leave(subscriber)

    def push(self, event: Event) -> None:
        """Listener of the engine: the event is written out at once, before the order goes on."""
        if not self._subscribers:
            return
        copies = self._plan.copies_of(event) if self._plan.faults else 1
        if copies == 0 or time.monotonic() < self._silent_until_s:
            self.lost += 1
            return
        for subscriber in list(self._subscribers):
            text = subscriber.render(event)
            for _ in range(copies):
                subscriber.queue.put_nowait(text)
            self.sent += copies
            if subscriber.queue.qsize() > MAX_QUEUE:
                subscriber.queue.put_nowait(None)
                self.leave(subscriber)
