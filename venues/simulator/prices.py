"""A price per symbol that moves: a seeded random walk that is pulled back to where it started."""

from __future__ import annotations

from decimal import Decimal
from random import Random

from venues.simulator.markets import Market

STEP = 0.0004  # standard deviation of one tick's move, as a part of the price
PULL = 0.01  # how much of the distance to the start is taken back at each tick


class Quote:
    """The last price of one symbol, and its statistics since the start."""

    __slots__ = ("high", "last", "low", "open", "quote_volume", "trades", "volume")

    def __init__(self, price: Decimal) -> None:
        self.open = self.high = self.low = self.last = price
        self.volume = self.quote_volume = Decimal(0)
        self.trades = 0

    def move(self, price: Decimal) -> None:
        self.last = price
        self.high = max(self.high, price)
        self.low = min(self.low, price)

    def traded(self, price: Decimal, quantity: Decimal) -> None:
        self.volume += quantity
        self.quote_volume += price * quantity
        self.trades += 1


def next_price(random: Random, market: Market, last: Decimal) -> Decimal:
    """One tick of the walk."""
    now = float(last)
    pull = PULL * (float(market.start_price) - now)
    return market.round_price(Decimal(now * (1 + random.gauss(0, STEP)) + pull))
