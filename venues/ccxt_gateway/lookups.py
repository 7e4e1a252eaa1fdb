"""The calls to ccxt by which an order is looked up."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from venues.profiles import Rung

Request = Callable[[Any], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is looked for; see `Gateway.look`."""

    rung: Rung
    symbol: str
    client_order_id: str = ""
    venue_order_id: str = ""
    since_venue_ms: int | None = None

    def request(self, page_size: int) -> Request:
        """The call. Raises ValueError without the ID that the rung needs.

        An empty ID is never passed on: at a dozen venues it turns the address into that of the
        whole collection.
        """
        make = {
            Rung.CLIENT_ID: self._by_client_id,
            Rung.VENUE_ID: self._by_venue_id,
            Rung.OPEN_ORDERS: lambda size: lambda client: client.fetch_open_orders(self.symbol),
            Rung.CLOSED_ORDERS: self._orders,
            Rung.TRADES: self._trades,
        }
        return make[self.rung](page_size)

    def _by_client_id(self, _: int) -> Request:
        params = {"clientOrderId": _needed("client order ID", self.client_order_id)}
        return lambda client: client.fetch_order("", self.symbol, params)

    def _by_venue_id(self, _: int) -> Request:
        order_id = _needed("venue order ID", self.venue_order_id)
        return lambda client: client.fetch_order(order_id, self.symbol)

    def _orders(self, page_size: int) -> Request:
        """From an instant on, or the next page: from an order on, that one included."""
        if self.venue_order_id:
            params = {"orderId": _needed("venue order ID", self.venue_order_id)}
            return lambda client: client.fetch_orders(self.symbol, None, page_size, params)
        return lambda client: client.fetch_orders(self.symbol, self.since_venue_ms, page_size)

    def _trades(self, page_size: int) -> Request:
        """Of one order, then whenever they were; or of the symbol, from an instant on."""
        if self.venue_order_id:
            params = {"orderId": _needed("venue order ID", self.venue_order_id)}
            return lambda client: client.fetch_my_trades(self.symbol, None, page_size, params)
        return lambda client: client.fetch_my_trades(self.symbol, self.since_venue_ms, page_size)


def _needed(name: str, value: str) -> str:
    if not value.strip():
        raise ValueError(f"the look needs a {name}, and it is empty")
    return value
