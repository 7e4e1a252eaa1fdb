"""What the simulator saw and did: the truth that tests compare a desk with."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from venues.simulator.exchange import Exchange
from venues.simulator.orders import Execution, Order


@dataclass(slots=True)
class CreateRequest:
    """One request that may place an order, as it arrived, and what became of it.

    outcome: "pending" (held or delayed), "executed", "refused" (by the venue's rules, or by a
    fault, with `code`), "dropped" (never executed, no answer), "answered" (never executed, some
    other answer), "limited" (429 or 418), "redirected".
    """

    ordinal: int
    at_ms: float  # real time, not the simulator's movable clock
    connection: int
    request_on_connection: int
    method: str
    path: str
    params: dict[str, str]
    symbol: str
    client_order_id: str
    outcome: str = "pending"
    code: int | None = None
    message: str = ""
    order_id: int | None = None
    executed_at_ms: float | None = None
    answered: bool = False  # a whole answer was handed to the connection
    forgotten: bool = field(default=False, repr=False)

    def as_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__ if name != "forgotten"}


class Ledger:
    """Every create request, and how often everything was asked for."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._count = 0
        self.requests: list[CreateRequest] = []
        self.calls: Counter[tuple[str, str, str]] = Counter()  # endpoint, symbol, client ID

    def forget(self, symbol: str | None = None) -> None:
        """Forget all, or one symbol. Requests that are still pending will never be executed."""
        kept = []
        for request in self.requests:
            request.forgotten = symbol is None or request.symbol == symbol
            if not request.forgotten:
                kept.append(request)
        self.requests = kept
        self.calls = Counter(
            {key: n for key, n in self.calls.items() if symbol is not None and key[1] != symbol}
        )

    def note(
        self, method: str, path: str, params: dict[str, str], symbol: str, client_order_id: str
    ) -> CreateRequest:
        """Write down a create request that just arrived."""
        self._count += 1
        request = CreateRequest(
            self._count, time.time() * 1000, 0, 0, method, path, params, symbol, client_order_id
        )
        self.requests.append(request)
        return request

    def as_json(self, symbol: str | None, client_order_id: str | None) -> dict[str, Any]:
        """The whole truth, or the part about one symbol or one client order ID."""

        def wanted(item: CreateRequest | Order | Execution) -> bool:
            return symbol in (None, item.symbol) and client_order_id in (
                None,
                item.client_order_id,
            )

        calls: dict[str, dict[str, int]] = {}
        for (endpoint, its_symbol, its_id), count in self.calls.items():
            if symbol in (None, its_symbol) and client_order_id in (None, its_id):
                counts = calls.setdefault(endpoint, {})
                counts[its_symbol] = counts.get(its_symbol, 0) + count
        orders = [order for order in self._exchange.orders.values() if wanted(order)]
        return {
            "requests": [r.as_json() for r in self.requests if wanted(r)],
            "orders": [order_json(order) for order in orders],
            "executions": [execution_json(e) for order in orders for e in order.executions],
            "calls": calls,
        }


def text(number: Decimal | None) -> str | None:
    """Plain decimal notation without needless zeros."""
    return None if number is None else f"{number.normalize():f}"


def order_json(order: Order) -> dict[str, Any]:
    """One order of the ledger."""
    return {
        "order_id": order.order_id,
        "client_order_id": order.client_order_id,
        "symbol": order.symbol,
        "side": order.side,
        "type": order.type,
        "time_in_force": order.time_in_force,
        "status": order.status.value,
        "quantity": text(order.quantity),
        "price": text(order.price),
        "executed": text(order.executed),
        "quote_spent": text(order.quote_spent),
        "created_ms": order.created_ms,
        "updated_ms": order.updated_ms,
    }


def execution_json(execution: Execution) -> dict[str, Any]:
    """One execution of the ledger."""
    return {
        "trade_id": execution.trade_id,
        "order_id": execution.order_id,
        "client_order_id": execution.client_order_id,
        "symbol": execution.symbol,
        "side": execution.side,
        "quantity": text(execution.quantity),
        "price": text(execution.price),
        "commission": text(execution.commission),
        "commission_asset": execution.commission_asset,
        "maker": execution.maker,
        "at_ms": execution.at_ms,
    }
