"""An exchange with a ledger. It is as unkind as its profile allows, and not more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from random import Random

from tests.simulation.clocks import MachineClock
from tests.simulation.loop import VirtualLoop
from tests.simulation.plan import Plan
from venues.gateway import OrderReport, OrderSpec, OrderStatus, TradeReport
from venues.profiles import Rung, UsedId

PRICE = Decimal(100)
AHEAD_MS = 1000  # a request from further in the future is refused for its clock
BROKE = "Account has insufficient balance for requested action."
_CLOSED = (OrderStatus.FILLED, OrderStatus.CANCELED, OrderStatus.REJECTED)


@dataclass
class VenueOrder:
    """One order in the ledger. Instants are true time."""

    venue_order_id: str
    client_order_id: str
    spec: OrderSpec
    at_ms: int  # the venue's clock
    shown_at: float
    status: OrderStatus = OrderStatus.OPEN
    filled: Decimal = Decimal(0)
    ended_at: float = float("inf")
    end_shown_at: float = float("inf")
    hidden_until: float = 0.0
    trades: list[tuple[TradeReport, float]] = field(default_factory=list)  # and when it shows

    @property
    def is_open(self) -> bool:
        return self.status is OrderStatus.OPEN

    @property
    def left(self) -> Decimal:
        return self.spec.quantity - self.filled

    def report(self, *trades: TradeReport) -> OrderReport:
        return OrderReport(
            venue_order_id=self.venue_order_id,
            client_order_id=self.client_order_id,
            symbol=self.spec.symbol,
            side=self.spec.side,
            status=self.status,
            quantity=self.spec.quantity,
            filled=self.filled,
            average_price=PRICE if self.filled else None,
            at_venue_ms=self.at_ms,
            trades=trades,
        )


@dataclass(frozen=True)
class Reply:
    """What the venue says to one request, before the network has its way with it.

    status 0: no answer at all; whole False: the answer broke off.
    """

    status: int = 200
    code: str = ""
    message: str = ""
    reports: tuple[OrderReport, ...] = ()
    trades: tuple[TradeReport, ...] = ()
    complete: bool = True
    whole: bool = True
    limited_s: float | None = None
    venue_ms: float = 0.0


class Venue:
    """Takes orders, executes them in its own time, and shows them as it likes."""

    def __init__(
        self,
        loop: VirtualLoop,
        plan: Plan,
        random: Random,
        clock: MachineClock,
        tell: Callable[[str, str], None],
    ) -> None:
        self.loop, self.plan, self.rules, self.random = loop, plan, plan.rules, random
        self.clock, self.tell = clock, tell
        self.orders: list[VenueOrder] = []
        self.peace = False
        self.limited_until = 0.0
        self.push: Callable[[OrderReport], None] = lambda _: None
        self._seen: set[str] = set()
        self._numbers = 0

    # ---- requests

    def _now_ms(self, *, orders: bool = False) -> float:
        """The clock of the server that answers: they differ a little.

        At worst the one that tells the time is ahead, and the one that takes orders is behind.
        """
        jitter_ms = 0.0 if self.peace else self.plan.faults.venue_jitter_s * 1000
        sign = self.random.choice((-1, 1))
        if self.plan.theme == "margin":
            sign = -1 if orders else 1
        return self.clock.now_ms() + sign * jitter_ms

    def true_s(self, venue_ms: float) -> float:
        """When the venue's clock will show it, jitter apart."""
        return self.loop.time() + (venue_ms - self.clock.now_ms()) / 1000

    def _limited(self) -> Reply | None:
        left_s = self.limited_until - self.loop.time()
        if left_s <= 0:
            return None
        return Reply(429, "-1003", "Too many requests.", limited_s=left_s)

    def time(self) -> Reply:
        return self._limited() or Reply(venue_ms=self._now_ms())

    def place(self, spec: OrderSpec, client_order_id: str, claimed_ms: int, until_ms: int) -> Reply:
        if limited := self._limited():
            return limited
        reply = self._refuse(client_order_id, claimed_ms, until_ms)
        self._seen.add(client_order_id)
        if reply is not None:
            self.tell("venue", f"refuses {client_order_id}: {reply.message}")
            return reply
        order = self._accept(spec, client_order_id)
        return Reply(reports=(order.report(*(trade for trade, _ in order.trades)),))

    def _refuse(self, client_order_id: str, claimed_ms: int, until_ms: int) -> Reply | None:
        now_ms, profile = self._now_ms(orders=True), self.plan.profile
        if profile.expiry and (now_ms > until_ms or claimed_ms > now_ms + AHEAD_MS):
            return Reply(400, "-1021", "Timestamp for this request is outside of the recvWindow.")
        mine = [order for order in self.orders if order.client_order_id == client_order_id]
        used = {
            UsedId.UNIQUE_WHILE_OPEN: any(order.is_open for order in mine),
            UsedId.REJECTED_FOREVER: bool(mine),
            UsedId.BURNED: client_order_id in self._seen,
            UsedId.UNKNOWN: False,
        }[profile.used_id]
        if used:
            return Reply(400, "-2010", "Duplicate order sent.")
        if not self.peace and self.random.random() < self.rules.refuses:
            return Reply(400, "-2010", BROKE)
        return None

    def _accept(self, spec: OrderSpec, client_order_id: str) -> VenueOrder:
        self._numbers += 1
        late_s = 0.0 if self.peace else self.random.uniform(0, self.rules.late_accept_s)
        if self.random.random() < 0.7 and not self.peace:
            late_s = self.rules.late_accept_s
        order = VenueOrder(
            venue_order_id=f"o{self._numbers}",
            client_order_id=client_order_id,
            spec=spec,
            at_ms=int(self.clock.now_ms()),
            shown_at=self.loop.time() + late_s,
        )
        self.orders.append(order)
        self.tell("venue", f"accepts {client_order_id} as {order.venue_order_id}")
        self._begin(order)
        return order

    def cancel(self, symbol: str, client_order_id: str, venue_order_id: str | None) -> Reply:
        if limited := self._limited():
            return limited
        for order in self.orders:
            by_id = order.venue_order_id == venue_order_id
            if order.is_open and (by_id or order.client_order_id == client_order_id):
                self.end(order, OrderStatus.CANCELED)
                return Reply(reports=(order.report(),))
        return Reply(400, "-2011", "Unknown order sent.")

    # ---- look-ups

    def look(
        self, rung: Rung, symbol: str, client_order_id: str, venue_order_id: str, since_ms: int
    ) -> Reply:
        if limited := self._limited():
            return limited
        now, page = self.loop.time(), self.plan.profile.page_size
        if rung is Rung.TRADES:
            trades = self._trades(symbol, venue_order_id, since_ms)
            if venue_order_id:  # no order here has a page full of them
                return Reply(trades=tuple(trades))
            complete = len(trades) < page and self._reaches(since_ms)
            return Reply(trades=tuple(trades[:page]), complete=complete)
        rows = [
            order
            for order in self.orders
            if order.spec.symbol == symbol and order.shown_at <= now and order.hidden_until <= now
        ]
        if rung is Rung.VENUE_ID:
            return _one([order for order in rows if order.venue_order_id == venue_order_id])
        if rung is Rung.CLIENT_ID:
            mine = [order for order in rows if order.client_order_id == client_order_id]
            return _one([order for order in mine if self._remembers(order)])
        if rung is Rung.OPEN_ORDERS:
            return Reply(reports=tuple(order.report() for order in rows if order.is_open))
        ended = [o for o in rows if self._lists_closed(o) and o.at_ms >= since_ms]
        if venue_order_id:  # the page after this order
            ended = [o for o in ended if _number(o) > int(venue_order_id[1:])]
        complete = len(ended) < page and self._reaches(since_ms)
        return Reply(reports=tuple(order.report() for order in ended[:page]), complete=complete)

    def _lists_closed(self, order: VenueOrder) -> bool:
        return self.rules.all_orders or order.end_shown_at <= self.loop.time()

    def _remembers(self, order: VenueOrder) -> bool:
        forget_s = self.rules.forget_id_s
        return order.is_open or forget_s is None or self.loop.time() < order.ended_at + forget_s

    def _trades(self, symbol: str, venue_order_id: str, since_ms: int) -> list[TradeReport]:
        now = self.loop.time()
        return [
            trade
            for order in self.orders
            if order.spec.symbol == symbol and order.hidden_until <= now
            for trade, shown_at in order.trades
            if shown_at <= now
            and (not venue_order_id or trade.venue_order_id == venue_order_id)
            and trade.at_venue_ms >= since_ms
        ]

    def _reaches(self, since_ms: int) -> bool:
        window_ms = self.plan.profile.window_ms
        return window_ms is None or self.clock.now_ms() - since_ms < window_ms

    def looked(self, symbol: str) -> None:
        """Somebody asks: the worst instant for an order to end is now."""
        if self.peace:
            return
        moving = self.plan.theme == "moving orders"
        for order in self.orders:
            here = order.is_open and order.spec.symbol == symbol
            if moving and order.shown_at > self.loop.time():
                continue
            if here and self.random.random() < self.rules.fills_on_look:
                self.fill(order, order.left)

    # ---- what happens to orders

    def _begin(self, order: VenueOrder) -> None:
        random, at_once = self.random, order.spec.type == "market"
        immediate = order.spec.time_in_force in ("IOC", "FOK")
        if random.random() < self.rules.eager or at_once or immediate:
            whole = random.random() < 0.6 or self.peace
            part = order.left if whole else Decimal(random.randint(0, int(order.left)))
            if part and not (self.peace and immediate):
                self.fill(order, part)
            if immediate and order.is_open:
                self.end(order, OrderStatus.CANCELED)
        if order.is_open:
            self.loop.later(self._soon(), self._go_on, order)

    def _soon(self) -> float:
        if self.peace:
            return self.random.uniform(0.05, 1.0)
        least = 2.0 if self.plan.theme == "moving orders" else 0.0
        return self.random.uniform(least, least + 4.0)

    def _go_on(self, order: VenueOrder) -> None:
        """One more thing happens to an order that rests."""
        if not order.is_open:
            return
        roll = self.random.random()
        if roll < 0.1 and not order.filled:
            self.end(order, OrderStatus.REJECTED)
        elif roll < 0.25:
            self.end(order, OrderStatus.CANCELED)
        elif roll < 0.6 or self.peace:
            self.fill(order, order.left)
        else:
            self.fill(order, Decimal(self.random.randint(1, max(1, int(order.left)))))
        if order.is_open:
            self.loop.later(self._soon(), self._go_on, order)

    def fill(self, order: VenueOrder, quantity: Decimal) -> None:
        self._numbers += 1
        trade = TradeReport(
            venue_trade_id=f"t{self._numbers}",
            venue_order_id=order.venue_order_id,
            symbol=order.spec.symbol,
            side=order.spec.side,
            quantity=quantity,
            price=PRICE,
            fee=Decimal("0.1"),
            fee_currency="USDT",
            at_venue_ms=int(self.clock.now_ms()),
        )
        late_s = 0.0 if self.peace else self.random.uniform(0, self.rules.late_trade_s)
        shown_at = max(order.shown_at, self.loop.time() + late_s)
        order.trades.append((trade, shown_at))
        order.filled += quantity
        self.tell("venue", f"executes {quantity} of {order.client_order_id}, {order.left} left")
        if not self.peace and self.random.random() < self.rules.refuses_first:
            self.push(replace(order.report(), status=OrderStatus.REJECTED, filled=Decimal(0)))
        if not order.left:
            self.end(order, OrderStatus.FILLED, trade)
        else:
            self.push(order.report(trade))

    def end(self, order: VenueOrder, status: OrderStatus, *trades: TradeReport) -> None:
        order.status, order.ended_at = status, self.loop.time()
        late_s = 0.0 if self.peace else self.random.choice((0.0, self.rules.late_end_s))
        order.end_shown_at = self.loop.time() + late_s
        self.tell("venue", f"ends {order.client_order_id}: {status.value}")
        self.push(order.report(*trades))
        if status is OrderStatus.CANCELED and self.random.random() < self.rules.fills_after_end:
            self.loop.later(self.random.uniform(0.0, 1.0), self._fill_ended, order)

    def _fill_ended(self, order: VenueOrder) -> None:
        """The cancel was done, and then there was an execution after all."""
        if order.left and not self.peace:
            self.fill(order, Decimal(self.random.randint(1, int(order.left))))

    def hide(self, order: VenueOrder, until: float) -> None:
        """Stop showing an order that the desk knows of."""
        order.hidden_until = until
        self.tell("venue", f"stops showing {order.client_order_id} until {until:.1f}")


def _number(order: VenueOrder) -> int:
    return int(order.venue_order_id[1:])


def _one(orders: list[VenueOrder]) -> Reply:
    if not orders:
        return Reply(400, "-2013", "Order does not exist.")
    return Reply(reports=(orders[-1].report(),))
