"""The contract between a lane and a venue: value objects, outcomes, and the gateway itself.

Money is `Decimal`, instants are milliseconds since the epoch on the clock that the name tells
(`venue_ms` is the venue's, `desk_ms` is ours), durations carry their unit. A gateway method never
raises for anything that a venue or a network does: it returns what it knows, and "nothing" is an
answer of its own kind.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any, Protocol

from venues.profiles import Profile, Rung


class Outcome(StrEnum):
    """What one answer to one create request proves about that request."""

    ACCEPTED = "accepted"  # the order exists; the answer carries its venue order ID
    REJECTED = "rejected"  # this request was definitely refused and will never be placed
    NOT_PLACED = "not_placed"  # never left the process, or refused for its age, nonce or rate
    DUPLICATE = "duplicate"  # the venue says that it knows the client order ID already
    UNKNOWN = "unknown"  # everything else


class OrderStatus(StrEnum):
    """The state of an order as the venue reports it."""

    OPEN = "open"
    FILLED = "filled"
    CANCELED = "canceled"  # also expired at the venue (IOC, FOK, GTD)
    REJECTED = "rejected"  # accepted first, refused by the matching engine later
    UNKNOWN = "unknown"  # a word that we do not know; never acted upon


class SecretText(str):
    """A credential. Prints as stars, so that no log or traceback can show it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"


NO_SECRET = SecretText("")


@dataclass(frozen=True, slots=True)
class VenueSettings:
    """One account of the account file, its secrets resolved."""

    account: str
    exchange: str
    symbols: tuple[str, ...]
    api_key: SecretText
    secret: SecretText
    password: SecretText = NO_SECRET
    sandbox: bool = False
    base_url: str | None = None
    timeout_ms: int = 5000
    request_expiry_ms: int = 3000
    absence: str | int = "human"  # "human", or seconds to wait
    stream: bool = True  # False: never listen to the venue's pushes, poll only
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OrderSpec:
    """What to place. `price` and `stop_price` are None where the type has none."""

    symbol: str
    side: str  # "buy" | "sell"
    type: str  # "market" | "limit"
    quantity: Decimal
    price: Decimal | None = None
    time_in_force: str | None = None  # "GTC" | "IOC" | "FOK"
    post_only: bool = False
    reduce_only: bool = False
    stop_price: Decimal | None = None
    params: Mapping[str, Any] = field(default_factory=dict)


def monotonic_s() -> float:
    """The clock of permits and leases: seconds that never step back and count a suspend too.

    Python's own monotonic clock stands still while a Linux machine sleeps; a lease does not.
    """
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class PermitUsedError(RuntimeError):
    """A second request was about to leave under one permit."""


@dataclass(slots=True)
class Permit:
    """The right to send one create request, taken with the claim and used up by the send.

    `claimed_venue_ms` is the claim's instant on the venue's clock; the venue is told to refuse
    the request after `expires_venue_ms`. `send_before_monotonic_s` is the last instant, by
    `monotonic_s()`, at which the request may leave (the lease's and the request's end).
    """

    client_order_id: str
    attempt: int
    claimed_venue_ms: int
    expires_venue_ms: int
    send_before_monotonic_s: float
    used: bool = False

    def use(self) -> None:
        """Spend the permit. Raises PermitUsedError the second time."""
        if self.used:
            raise PermitUsedError(f"permit {self.client_order_id}#{self.attempt} is used up")
        self.used = True


@dataclass(frozen=True, slots=True)
class Evidence:
    """One request to the venue and what came back.

    Secrets are removed and bodies cut to 4,096 characters.
    """

    call: str  # what we asked, e.g. "create_order", "look:client_id"
    request: str  # method, path and parameters, without key and signature
    sent: bool  # False where it is certain that no byte left
    at_desk_ms: int  # when it was asked, our clock
    elapsed_ms: float
    status: int | None = None  # HTTP status, None without an answer
    body: str = ""  # the raw answer
    error: str = ""  # exception class and message, "" for none

    def as_json(self) -> dict[str, Any]:
        """The form in which a transition keeps it."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class TradeReport:
    """One execution, as the venue reports it."""

    venue_trade_id: str
    venue_order_id: str
    symbol: str
    side: str
    quantity: Decimal
    price: Decimal
    fee: Decimal
    fee_currency: str
    at_venue_ms: int


@dataclass(frozen=True, slots=True)
class OrderReport:
    """One order, as the venue reports it. `client_order_id` is "" where the venue does not say."""

    venue_order_id: str
    client_order_id: str
    symbol: str
    side: str
    status: OrderStatus
    quantity: Decimal
    filled: Decimal
    average_price: Decimal | None = None
    reason: str = ""
    at_venue_ms: int | None = None
    trades: tuple[TradeReport, ...] = ()


@dataclass(frozen=True, slots=True)
class PlaceAnswer:
    """What came of one create request."""

    outcome: Outcome
    evidence: Evidence
    report: OrderReport | None = None  # with ACCEPTED only
    message: str = ""  # the venue's words, for people
    limited_until_desk_ms: int | None = None  # a rate limit or a ban, where the answer tells one


@dataclass(frozen=True, slots=True)
class CancelAnswer:
    """What came of one cancel request. Not done is not proof of anything."""

    done: bool
    evidence: Evidence
    report: OrderReport | None = None
    message: str = ""
    limited_until_desk_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """The answer of one rung. `answered` is False where the look-up failed in any way.

    `reports` holds all orders that the venue returned, unfiltered: matching is the caller's.
    `trades` is filled by the trades rung and by `trades()` alone. `complete` is False where the
    venue's page was full, so that an order may have been cut off.
    """

    rung: Rung
    answered: bool
    evidence: Evidence
    reports: tuple[OrderReport, ...] = ()
    trades: tuple[TradeReport, ...] = ()
    complete: bool = True
    limited_until_desk_ms: int | None = None


@dataclass(frozen=True, slots=True)
class ClockReading:
    """venue clock = our clock + offset_ms, give or take uncertainty_ms (half of the round trip)."""

    offset_ms: float
    uncertainty_ms: float
    at_desk_ms: int


@dataclass(frozen=True, slots=True)
class MarketInfo:
    """A symbol's rules. None where the venue gives none."""

    symbol: str
    base: str
    quote: str
    quantity_step: Decimal | None = None
    price_tick: Decimal | None = None
    min_quantity: Decimal | None = None
    max_quantity: Decimal | None = None
    min_notional: Decimal | None = None


class ConnectError(Exception):
    """The venue's markets or clock could not be read; says which call failed and how."""


class Gateway(Protocol):
    """One account at one venue."""

    settings: VenueSettings
    profile: Profile

    async def connect(self) -> Sequence[MarketInfo]:
        """Load the rules of the account's symbols. Raises ConnectError; may be called again."""
        ...

    async def clock(self) -> ClockReading | None:
        """Compare clocks with the venue. None where it did not answer."""
        ...

    async def place(self, order: OrderSpec, permit: Permit) -> PlaceAnswer:
        """Send one create request, once. Without a fresh permit nothing is sent."""
        ...

    async def cancel(
        self, symbol: str, client_order_id: str, venue_order_id: str | None
    ) -> CancelAnswer:
        """Ask to cancel, by client order ID where there is no other. Never with an empty ID."""
        ...

    async def look(
        self,
        rung: Rung,
        symbol: str,
        *,
        client_order_id: str = "",
        venue_order_id: str = "",
        since_venue_ms: int | None = None,
    ) -> Look:
        """Climb one rung.

        CLIENT_ID needs client_order_id, VENUE_ID needs venue_order_id; OPEN_ORDERS, CLOSED_ORDERS
        and TRADES are for the whole symbol, from since_venue_ms on where the venue can (TRADES
        takes venue_order_id too, and then returns the executions of that order only; with it,
        CLOSED_ORDERS returns the page that begins with that order). A definite
        "no such order" is `answered` with no reports.
        """
        ...

    def stream(self) -> AsyncIterator[OrderReport] | None:
        """The venue's pushes about our orders, reconnecting by itself; None where there is none.

        Reports without trades are normal. The stream is a hint: it may stall, drop or repeat.
        """
        ...

    async def close(self) -> None:
        """Release sockets. Idempotent."""
        ...
