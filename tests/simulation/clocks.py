"""What the clock of each machine shows. True time is the loop's."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tests.simulation.loop import VirtualLoop

EPOCH = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
EPOCH_MS = int(EPOCH.timestamp() * 1000)


@dataclass
class MachineClock:
    """`orders.clock.Clock` of one machine: off by a constant, and it may step."""

    loop: VirtualLoop
    offset_s: float = 0.0
    boot_s: float = 1000.0

    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=self.loop.time() + self.offset_s)

    def now_ms(self) -> float:
        return EPOCH_MS + (self.loop.time() + self.offset_s) * 1000

    def monotonic(self) -> float:
        return self.boot_s + self.loop.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def step(self, seconds: float) -> None:
        self.offset_s += seconds
