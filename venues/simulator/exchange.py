"""The engine: takes orders, matches them against a moving price, and never forgets one.

It knows no HTTP and no venue's format. All calls are synchronous and run on one event loop, so
every call is atomic.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from random import Random

from venues.profiles import UsedId
from venues.simulator.balances import Balances
from venues.simulator.clock import Clock
from venues.simulator.markets import QUOTE, Market, all_markets
from venues.simulator.orders import (
    ZERO,
    Event,
    Execution,
    Hide,
    Order,
    Reason,
    RefusedError,
    Status,
    Ticket,
)
from venues.simulator.prices import Quote, next_price

COMMISSION = Decimal("0.001")  # binance spot, without discounts, of what the order receives
LEVELS = 10  # price levels of a book; the last one of a market order takes the rest
START_QUOTE = Decimal(100_000_000)
START_BASE_NOTIONAL = Decimal(100_000_000)  # of each base asset, at its start price

Listener = Callable[[Event], None]
Take = tuple[Decimal, Decimal]  # price, quantity


@dataclass(slots=True)
class Rules:
    """How this venue treats a used client order ID and an expired request."""

    used_id: UsedId = UsedId.UNIQUE_WHILE_OPEN
    honour_expiry: bool = True


class Exchange:
    """One account at one venue."""

    def __init__(self, clock: Clock, seed: int = 0, rules: Rules | None = None) -> None:
        self.clock = clock
        self.rules = rules or Rules()
        self.markets: dict[str, Market] = all_markets()
        self.listeners: list[Listener] = []
        self._random = Random(seed)
        # Derived from the clock, so that a restarted simulator does not give out an ID again.
        # Trade IDs have a range of their own, so that nobody can take one for an order ID.
        self._last_order_id = time.time_ns() // 1_000
        self._last_trade_id = self._last_order_id * 2
        self.reset()

    def reset(self) -> None:
        """Forget every order and start with fresh balances and prices. IDs go on growing."""
        start = {
            market.base: market.round_quantity(START_BASE_NOTIONAL / market.start_price)
            for market in self.markets.values()
        }
        self.balances = Balances(start | {QUOTE: START_QUOTE})
        self.quotes = {symbol: Quote(m.start_price) for symbol, m in self.markets.items()}
        self.orders: dict[int, Order] = {}
        self._of_symbol: dict[str, list[Order]] = defaultdict(list)
        self._open: dict[str, dict[int, Order]] = defaultdict(dict)
        self._of_client: dict[tuple[str, str], list[Order]] = defaultdict(list)
        self._seen_ids: set[tuple[str, str]] = set()
        self.executions: dict[str, list[Execution]] = defaultdict(list)

    def reset_symbol(self, symbol: str) -> None:
        """Forget one symbol's orders, executions and used IDs. Balances keep what was traded."""
        market = self.market(symbol)
        for order in list(self._open[symbol].values()):
            self.balances.release(self._pays(market, order), order.locked)
        for order in self._of_symbol.pop(symbol, []):
            del self.orders[order.order_id]
            self._of_client.pop((symbol, order.client_order_id), None)
        self._open.pop(symbol, None)
        self.executions.pop(symbol, None)
        self._seen_ids = {key for key in self._seen_ids if key[0] != symbol}
        self.quotes[symbol] = Quote(market.start_price)

    # ---- reading

    def market(self, symbol: str) -> Market:
        """Raises RefusedError for a symbol that is not listed."""
        market = self.markets.get(symbol)
        if market is None:
            raise RefusedError(Reason.UNKNOWN_SYMBOL)
        return market

    def by_client_id(self, symbol: str, client_order_id: str) -> list[Order]:
        """Every order of the symbol that had this ID, the oldest first."""
        return self._of_client.get((symbol, client_order_id), [])

    def open_orders(self, symbol: str | None = None) -> list[Order]:
        if symbol is not None:
            return list(self._open.get(symbol, {}).values())
        return [order for orders in self._open.values() for order in orders.values()]

    def orders_of(self, symbol: str) -> list[Order]:
        """All orders of the symbol, the oldest first."""
        return self._of_symbol.get(symbol, [])

    # ---- placing

    def burn(self, symbol: str, client_order_id: str) -> None:
        """Remember an ID although its request failed."""
        if client_order_id:
            self._seen_ids.add((symbol, client_order_id))

    def place(
        self, ticket: Ticket, *, at_once: Decimal | None = None, hides: Iterable[Hide] = ()
    ) -> Order:
        """Take an order and execute what can be executed now. Raises RefusedError.

        With `at_once`, exactly this quantity (at most the order's) is executed now.
        """
        market = self.market(ticket.symbol)
        used = self._is_used(ticket)
        self.burn(ticket.symbol, ticket.client_order_id)
        if used:
            raise RefusedError(Reason.DUPLICATE_ID)
        market.check(ticket, self.quotes[ticket.symbol].last)
        takes = self._takes(market, ticket, at_once)
        order = self._new_order(ticket)
        order.hides.extend(hides)
        try:
            if ticket.type == "LIMIT_MAKER" and takes and at_once is None:
                raise RefusedError(Reason.WOULD_MATCH)
            self._lock(market, order, takes)
        except RefusedError as refused:
            self._reject(order, refused.reason)
            raise
        self._store(order)
        self._emit("NEW", order)
        self._execute_now(market, order, takes)
        return order

    def _is_used(self, ticket: Ticket) -> bool:
        key = (ticket.symbol, ticket.client_order_id)
        if not ticket.client_order_id:
            return False
        if self.rules.used_id is UsedId.UNIQUE_WHILE_OPEN:
            return any(order.is_open for order in self._of_client.get(key, ()))
        if self.rules.used_id is UsedId.REJECTED_FOREVER:
            return key in self._of_client
        return key in self._seen_ids

    def _new_order(self, ticket: Ticket) -> Order:
        self._last_order_id += 1
        now_ms = self.clock.now_ms()
        return Order(
            order_id=self._last_order_id,
            client_order_id=ticket.client_order_id or f"sim{self._last_order_id}",
            symbol=ticket.symbol,
            side=ticket.side,
            type=ticket.type,
            time_in_force=ticket.time_in_force,
            quantity=ticket.quantity,
            price=ticket.price,
            created_ms=now_ms,
            updated_ms=now_ms,
            created_s=time.monotonic(),
        )

    def _takes(self, market: Market, ticket: Ticket, at_once: Decimal | None) -> list[Take]:
        """What the book gives this ticket now: the last price, then one tick worse per level."""
        price, limit = self.quotes[market.symbol].last, ticket.price
        buys = ticket.side == "BUY"
        if at_once is not None:
            better = limit is None or (price <= limit if buys else price >= limit)
            return [(price if better else limit or price, min(at_once, ticket.quantity))]
        takes, left = [], ticket.quantity
        for level in range(1, LEVELS + 1):
            if left <= 0 or price <= 0 or (limit is not None and _worse(price, limit, buys)):
                break
            last_of_market = limit is None and level == LEVELS
            part = left if last_of_market else min(left, market.level_quantity)
            takes.append((price, part))
            left -= part
            price += market.tick if buys else -market.tick
        if ticket.time_in_force == "FOK" and left > 0:
            return []
        return takes

    def _pays(self, market: Market, order: Order) -> str:
        return market.quote if order.side == "BUY" else market.base

    def _lock(self, market: Market, order: Order, takes: list[Take]) -> None:
        amount = order.quantity
        if order.side == "BUY" and order.price is not None:
            amount = order.quantity * order.price
        elif order.side == "BUY":
            amount = sum((price * quantity for price, quantity in takes), ZERO)
        self.balances.lock(self._pays(market, order), amount)
        order.locked = amount

    def _reject(self, order: Order, reason: Reason) -> None:
        order.status = Status.REJECTED
        self._emit("REJECTED", order, reason=reason)

    def _store(self, order: Order) -> None:
        self.orders[order.order_id] = order
        self._of_symbol[order.symbol].append(order)
        self._open[order.symbol][order.order_id] = order
        self._of_client[order.symbol, order.client_order_id].append(order)

    def _execute_now(self, market: Market, order: Order, takes: list[Take]) -> None:
        for price, quantity in takes:
            self._execute(market, order, price, quantity, maker=False)
        if order.is_open and (order.type == "MARKET" or order.time_in_force in ("IOC", "FOK")):
            self._finish(market, order, Status.EXPIRED)
            self._emit("EXPIRED", order)

    # ---- what happens later

    def cancel(self, order: Order, cancel_id: str = "") -> None:
        """End an open order."""
        assert order.is_open, f"order {order.order_id} is {order.status}"
        self._finish(self.market(order.symbol), order, Status.CANCELED)
        self._emit("CANCELED", order, cancel_id=cancel_id)

    def fill(self, order: Order, quantity: Decimal) -> None:
        """Execute part of an open order at its own price, whatever the market's is."""
        assert order.is_open, f"order {order.order_id} is {order.status}"
        assert ZERO < quantity <= order.remaining, f"only {order.remaining} is left"
        price = order.price if order.price is not None else self.quotes[order.symbol].last
        self._execute(self.market(order.symbol), order, price, quantity, maker=True)

    def fill_late(self, order: Order, quantity: Decimal) -> None:
        """Execute part of what an ended order left, as a venue does that had not told all yet."""
        still_open = self._open[order.symbol]
        assert order.order_id not in still_open, f"order {order.order_id} is {order.status}"
        assert ZERO < quantity <= order.remaining, f"only {order.remaining} is left"
        ended, market = order.status, self.market(order.symbol)
        price = order.price if order.price is not None else self.quotes[order.symbol].last
        amount = price * quantity if order.side == "BUY" else quantity
        self.balances.lock(self._pays(market, order), amount)
        order.locked += amount
        still_open[order.order_id] = order
        self._execute(market, order, price, quantity, maker=True)
        if order.order_id in still_open:
            self._finish(market, order, ended)

    def push(self, order: Order, kind: str, says: Status) -> None:
        """Tell the streams of an order what is not, or not yet, so."""
        self._emit(kind, order, says=says)

    def set_price(self, symbol: str, price: Decimal) -> None:
        """Move the price; every resting order that it crosses fills one level's quantity."""
        market = self.market(symbol)
        self.quotes[symbol].move(price)
        for order in list(self._open.get(symbol, {}).values()):
            if order.price is not None and not _worse(price, order.price, order.side == "BUY"):
                part = min(order.remaining, market.level_quantity)
                self._execute(market, order, order.price, part, maker=True)

    def tick(self) -> None:
        """Let every price make one step of its walk."""
        for symbol, market in self.markets.items():
            self.set_price(symbol, next_price(self._random, market, self.quotes[symbol].last))

    def _execute(
        self, market: Market, order: Order, price: Decimal, quantity: Decimal, *, maker: bool
    ) -> None:
        self._last_trade_id += 1
        now_ms, cost, buys = self.clock.now_ms(), price * quantity, order.side == "BUY"
        receives, gain = (market.base, quantity) if buys else (market.quote, cost)
        fee = (gain * COMMISSION).quantize(Decimal("1e-8"))
        paid = cost if buys else quantity
        self.balances.swap(self._pays(market, order), paid, receives, gain - fee)
        order.locked -= paid
        if buys and order.price is not None:  # it had locked its limit price, and paid less
            saved = (order.price - price) * quantity
            self.balances.release(market.quote, saved)
            order.locked -= saved
        execution = Execution(
            trade_id=self._last_trade_id,
            order_id=order.order_id,
            client_order_id=order.client_order_id,
            symbol=order.symbol,
            side=order.side,
            quantity=quantity,
            price=price,
            commission=fee,
            commission_asset=receives,
            maker=maker,
            at_ms=now_ms,
        )
        self._book(market, order, execution)

    def _book(self, market: Market, order: Order, execution: Execution) -> None:
        order.executed += execution.quantity
        order.quote_spent += execution.price * execution.quantity
        order.updated_ms = execution.at_ms
        order.executions.append(execution)
        self.executions[order.symbol].append(execution)
        self.quotes[order.symbol].traded(execution.price, execution.quantity)
        if order.remaining == 0:
            self._finish(market, order, Status.FILLED)
        else:
            order.status = Status.PARTIALLY_FILLED
        self._emit("TRADE", order, execution=execution)

    def _finish(self, market: Market, order: Order, status: Status) -> None:
        order.status = status
        order.updated_ms = self.clock.now_ms()
        order.finished_s = time.monotonic()
        self._open[order.symbol].pop(order.order_id)
        if order.locked:
            self.balances.release(self._pays(market, order), order.locked)
            order.locked = ZERO

    def _emit(
        self,
        kind: str,
        order: Order,
        *,
        execution: Execution | None = None,
        cancel_id: str = "",
        reason: Reason | None = None,
        says: Status | None = None,
    ) -> None:
        if self.listeners:
            event = Event(kind, order, self.clock.now_ms(), execution, cancel_id, reason, says)
            for listener in self.listeners:
                listener(event)


def _worse(price: Decimal, limit: Decimal, buys: bool) -> bool:
    return price > limit if buys else price < limit
