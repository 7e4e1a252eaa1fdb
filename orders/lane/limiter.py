"""What the venue's rate limits leave: two token buckets, one for orders, one for all requests."""

from __future__ import annotations

from orders.clock import Clock


class Bucket:
    """`size` tokens that refill evenly over `period_s`."""

    def __init__(self, clock: Clock, size: float, period_s: float) -> None:
        self._clock = clock
        self._size = size
        self._rate = size / period_s
        self._left = size
        self._at = clock.monotonic()

    def left(self) -> int:
        now = self._clock.monotonic()
        self._left = min(self._size, self._left + (now - self._at) * self._rate)
        self._at = now
        return max(0, int(self._left))

    def take(self, count: int = 1) -> None:
        """May go below zero: what has left has left."""
        self.left()
        self._left -= count

    async def wait(self) -> None:
        """Take one token, sleeping until there is one."""
        while self.left() < 1:
            await self._clock.sleep((1 - self._left) / self._rate)
        self.take()


class Limiter:
    """Orders are claimed only as far as both buckets reach; look-ups wait for theirs.

    A tenth of the request budget is kept for look-ups: they go before new orders.
    """

    def __init__(
        self, clock: Clock, orders: float, orders_s: float, requests: float, requests_s: float
    ) -> None:
        self._orders = Bucket(clock, orders, orders_s)
        self._requests = Bucket(clock, requests, requests_s)
        self._kept = int(requests / 10)

    def orders_left(self) -> int:
        return max(0, min(self._orders.left(), self._requests.left() - self._kept))

    def order_sent(self) -> None:
        self._orders.take()
        self._requests.take()

    async def request(self) -> None:
        await self._requests.wait()
