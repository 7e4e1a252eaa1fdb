"""What the engine deals in: tickets, orders, executions, events and refusals."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum

ZERO = Decimal(0)


class Status(StrEnum):
    """The state of an order, in the words that binance uses too."""

    NEW = "NEW"
    PARTIALLY_FILLED = "PARTIALLY_FILLED"
    FILLED = "FILLED"
    CANCELED = "CANCELED"
    EXPIRED = "EXPIRED"
    REJECTED = "REJECTED"


OPEN_STATUSES = frozenset({Status.NEW, Status.PARTIALLY_FILLED})


class Reason(StrEnum):
    """Why the engine refuses. A dialect translates it into its venue's code and words."""

    UNKNOWN_SYMBOL = "unknown_symbol"
    PRICE_FILTER = "price_filter"
    LOT_SIZE = "lot_size"
    NOTIONAL = "notional"
    INSUFFICIENT_BALANCE = "insufficient_balance"
    DUPLICATE_ID = "duplicate_id"
    WOULD_MATCH = "would_match"


class RefusedError(Exception):
    """The engine did not take the order."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.value)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Ticket:
    """What is to be placed. `price` is None for market orders, `client_order_id` "" for none."""

    symbol: str
    side: str  # "BUY" | "SELL"
    type: str  # "MARKET" | "LIMIT" | "LIMIT_MAKER"
    quantity: Decimal
    price: Decimal | None = None
    time_in_force: str = "GTC"  # "GTC" | "IOC" | "FOK"
    client_order_id: str = ""


@dataclass(frozen=True, slots=True)
class Hide:
    """A window during which the named look-ups do not show an order, in monotonic seconds.

    The window begins `after_s` after the order's acceptance, or after its end if `since_finish`,
    and lasts `for_s` (None: for ever).
    """

    endpoints: frozenset[str]
    for_s: float | None
    after_s: float = 0.0
    finished_only: bool = False
    since_finish: bool = False


@dataclass(frozen=True, slots=True)
class Execution:
    """One trade of one order. The commission is taken from what the order receives."""

    trade_id: int
    order_id: int
    client_order_id: str
    symbol: str
    side: str
    quantity: Decimal
    price: Decimal
    commission: Decimal
    commission_asset: str
    maker: bool
    at_ms: int


@dataclass(slots=True)
class Order:
    """One order. `locked` is what it still holds of the account's quote (buy) or base (sell)."""

    order_id: int
    client_order_id: str
    symbol: str
    side: str
    type: str
    time_in_force: str
    quantity: Decimal
    price: Decimal | None
    created_ms: int
    updated_ms: int
    created_s: float  # monotonic
    finished_s: float | None = None  # monotonic
    status: Status = Status.NEW
    executed: Decimal = ZERO
    quote_spent: Decimal = ZERO
    locked: Decimal = ZERO
    executions: list[Execution] = field(default_factory=list)
    hides: list[Hide] = field(default_factory=list)

    @property
    def is_open(self) -> bool:
        return self.status in OPEN_STATUSES

    @property
    def remaining(self) -> Decimal:
        return self.quantity - self.executed

    def hidden_from(self, endpoint: str, now_s: float) -> bool:
        """Whether this look-up must not show the order at this monotonic instant."""
        return any(self._hidden_by(hide, endpoint, now_s) for hide in self.hides)

    def _hidden_by(self, hide: Hide, endpoint: str, now_s: float) -> bool:
        if endpoint not in hide.endpoints or (hide.finished_only and self.finished_s is None):
            return False
        origin_s = self.finished_s if hide.since_finish else self.created_s
        if origin_s is None or now_s < origin_s + hide.after_s:
            return False
        return hide.for_s is None or now_s < origin_s + hide.after_s + hide.for_s


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to an order. Listeners must read `order` at once: it goes on."""

    kind: str  # "NEW" | "TRADE" | "CANCELED" | "EXPIRED" | "REJECTED"
    order: Order
    at_ms: int
    execution: Execution | None = None
    cancel_id: str = ""  # the client ID of the cancel request
    reason: Reason | None = None  # of a REJECTED
    says: Status | None = None  # instead of the order's own status
