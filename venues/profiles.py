"""Facts per venue, each with its source. What is not known here is treated as the worst."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Rung(StrEnum):
    """One way to ask a venue for an order, in the direction in which orders move."""

    CLIENT_ID = "client_id"
    VENUE_ID = "venue_id"
    OPEN_ORDERS = "open_orders"
    CLOSED_ORDERS = "closed_orders"
    TRADES = "trades"


class UsedId(StrEnum):
    """What the venue does with a client order ID that it has seen before."""

    REJECTED_FOREVER = "rejected_forever"  # every second use is refused as a duplicate
    BURNED = "burned"  # likewise, even where the first request failed
    UNIQUE_WHILE_OPEN = "unique_while_open"  # refused only while the first order is open
    UNKNOWN = "unknown"


class IdFormat(StrEnum):
    """The form of client order ID that the venue takes."""

    ALNUM18 = "alnum18"  # 18 lowercase letters and digits, the first a letter
    HEX32 = "hex32"  # 32 hex digits
    HEX32_0X = "hex32_0x"  # the same after 0x
    INT45 = "int45"  # a positive integer of at most 45 bits
    INT63 = "int63"  # a positive integer of at most 63 bits


@dataclass(frozen=True, slots=True)
class Profile:
    """What a lane must know of a venue. Durations in milliseconds.

    ladder: the rungs of a whole look, in the order in which they must be climbed.
    expiry: the venue refuses a create request after the instant that the request names.
    visibility_lag_ms: how long an accepted order or a fill may stay invisible to a look-up.
    create_endpoints: (method, path) of every request that may place an order; in a path, {} stands
    for one segment.
    client_id_fields: the names under which a create request carries our client order ID.
    other_writes: likewise, POST, PUT and PATCH requests that cannot place one; any that is in
    neither list is refused.
    max_expiry_ms: the longest life that the venue lets a request ask for.
    page_size, window_ms: how many rows one list answer has at most, and how far back it reaches.
    """

    exchange: str
    ladder: tuple[Rung, ...]
    expiry: bool
    used_id: UsedId
    id_format: IdFormat
    create_endpoints: tuple[tuple[str, str], ...]
    client_id_fields: tuple[str, ...]
    other_writes: tuple[tuple[str, str], ...] = ()
    max_expiry_ms: int = 60_000
    page_size: int = 500
    window_ms: int | None = None
    # One rung shows an order from its acceptance to long after its end. Without such a rung an
    # order may move from one list to the next between two questions, unseen by both.
    whole_life: bool = False
    visibility_lag_ms: int = 3000
    clock_margin_ms: int = 500
    stream: bool = False
    orders_per_10s: int = 50
    requests_per_minute: int = 600


PROFILES: dict[str, Profile] = {
    "binance": Profile(
        exchange="binance",
        # Query order, open orders, all orders and account trades of the spot REST API.
        ladder=(Rung.CLIENT_ID, Rung.OPEN_ORDERS, Rung.CLOSED_ORDERS, Rung.TRADES),
        # timestamp + recvWindow: refused with -1021 once the venue's clock is past their sum.
        expiry=True,
        # Measured and documented: unique among open orders only; accepted again after a fill.
        used_id=UsedId.UNIQUE_WHILE_OPEN,
        id_format=IdFormat.ALNUM18,
        # "Trading endpoints" of the spot REST API. Order lists carry a client order ID per leg
        # under other names, so that the transport lets none of them pass.
        create_endpoints=(
            ("POST", "/api/v3/order"),
            ("POST", "/api/v3/order/cancelReplace"),
            ("POST", "/api/v3/order/oco"),
            ("POST", "/api/v3/orderList/{}"),
            ("POST", "/api/v3/sor/order"),
        ),
        client_id_fields=("newClientOrderId",),
        # "The value cannot be greater than 60000" of recvWindow.
        max_expiry_ms=60_000,
        # allOrders, myTrades: limit at most 1000; at most 24 hours between startTime and endTime.
        page_size=1000,
        window_ms=86_400_000,
        # Query order by origClientOrderId and all orders know finished orders too (spot REST API:
        # only what was cancelled or expired unfilled is archived, after 90 days).
        whole_life=True,
        visibility_lag_ms=3000,
        stream=True,
        # rateLimits of exchangeInfo: 100 ORDERS per 10 s, 6,000 REQUEST_WEIGHT per minute.
        orders_per_10s=100,
        requests_per_minute=1200,
    ),
}


def profile_of(exchange: str) -> Profile:
    """The profile of a ccxt id. Raises KeyError, naming what is supported, for any other."""
    try:
        return PROFILES[exchange]
    except KeyError:
        supported = ", ".join(sorted(PROFILES))
        raise KeyError(f"no profile for exchange {exchange!r}; supported: {supported}") from None
