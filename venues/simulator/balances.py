"""What the account owns: free, and locked in open orders."""

from __future__ import annotations

from decimal import Decimal

from venues.simulator.orders import ZERO, Reason, RefusedError


class Balances:
    """Amounts per asset. Nothing may go below zero."""

    def __init__(self, start: dict[str, Decimal]) -> None:
        self.free = dict(start)
        self.locked = dict.fromkeys(start, ZERO)

    def lock(self, asset: str, amount: Decimal) -> None:
        """Set aside for an order. Raises RefusedError where there is not enough."""
        if self.free[asset] < amount:
            raise RefusedError(Reason.INSUFFICIENT_BALANCE)
        self.free[asset] -= amount
        self.locked[asset] += amount

    def release(self, asset: str, amount: Decimal) -> None:
        """Give back what was set aside."""
        self._unlock(asset, amount)
        self.free[asset] += amount

    def swap(self, paid: str, cost: Decimal, received: str, gain: Decimal) -> None:
        """Pay out of what is locked, receive as free."""
        self._unlock(paid, cost)
        self.free[received] += gain

    def _unlock(self, asset: str, amount: Decimal) -> None:
        assert amount <= self.locked[asset], f"{asset}: more than the locked {self.locked[asset]}"
        self.locked[asset] -= amount
