"""Time, handed in wherever it matters, so that a simulation can own it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Protocol

from venues.gateway import monotonic_s


class Clock(Protocol):
    def now(self) -> datetime:
        """Wall time, aware, UTC. It may step."""
        ...

    def monotonic(self) -> float:
        """Seconds that only grow, also over a suspend of the machine."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return monotonic_s()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


SYSTEM: Clock = SystemClock()


def now_ms(clock: Clock) -> int:
    """Wall time in milliseconds since the epoch."""
    return int(clock.now().timestamp() * 1000)
