"""The simulator's own clock, which tests may move."""

from __future__ import annotations

import time


class Clock:
    """Wall clock plus an offset. Only what the venue *says* moves: durations use monotonic time."""

    __slots__ = ("offset_ms",)

    def __init__(self, offset_ms: float = 0.0) -> None:
        self.offset_ms = offset_ms

    def now_ms(self) -> int:
        """Milliseconds since the epoch, as this venue sees them."""
        return int(time.time() * 1000 + self.offset_ms)
