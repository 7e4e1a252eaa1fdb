"""One account at one venue, through ccxt.

ccxt signs and sends; what came back is read from the wire, never from ccxt's return value.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from venues.ccxt_gateway import binance, orders
from venues.ccxt_gateway.answers import answer_of, payload_of, read_look, read_one
from venues.ccxt_gateway.client import open_client
from venues.ccxt_gateway.lookups import Wanted
from venues.ccxt_gateway.stream import Stream
from venues.gateway import (
    CancelAnswer,
    ClockReading,
    ConnectError,
    Evidence,
    Look,
    MarketInfo,
    OrderReport,
    OrderSpec,
    Outcome,
    Permit,
    PlaceAnswer,
    VenueSettings,
)
from venues.outcome import OrderName, classify
from venues.profiles import Profile, Rung
from venues.transport import OneShotSession, Recording, Wire, recording

MAX_BODY = 4096  # characters of an answer that evidence keeps
MAX_ERROR = 500
LIMIT_STATUSES = frozenset({418, 429})


class CcxtGateway:
    """See `venues.gateway.Gateway`. Use from one event loop; close it there."""

    def __init__(
        self, settings: VenueSettings, profile: Profile, *, wall_ms: Callable[[], int]
    ) -> None:
        self.settings = settings
        self.profile = profile
        self._wall_ms = wall_ms
        self._opened: tuple[Any, OneShotSession] | None = None
        self._closed = False
        self._markets: dict[str, MarketInfo] = {}
        self._symbols: dict[str, str] = {}  # the venue's name of a market -> ours
        self._offset_ms = 0.0  # venue clock minus ours, as last read
        self._streams: list[Stream] = []

    # ---- rules and clock

    async def connect(self) -> Sequence[MarketInfo]:
        self._closed = False
        client = self._client
        with recording() as kept:
            try:
                await client.load_markets(True)
                markets = [_market_info(self._listed(symbol)) for symbol in self.settings.symbols]
            except ConnectError:
                raise
            except Exception as error:
                asked = kept.last.shown if kept.last else "load markets"
                raise ConnectError(
                    f"{self.settings.exchange}: {asked}: {self._describe(error)}"
                ) from None
        self._markets = {market.symbol: market for market in markets}
        self._symbols = {
            name: rows[0]["symbol"] for name, rows in (client.markets_by_id or {}).items()
        }
        return markets

    def _listed(self, symbol: str) -> Any:
        market = self._client.markets.get(symbol)
        if market is None:
            raise ConnectError(
                f"symbols: {self.settings.exchange} has no market {symbol!r}; correct it in the "
                f"account {self.settings.account!r} of the account file"
            )
        return market

    async def clock(self) -> ClockReading | None:
        began, asked_ms = time.perf_counter(), self._wall_ms()
        try:
            client = self._client
            venue_ms = int(await client.fetch_time())
        except Exception:
            return None
        half_ms = (time.perf_counter() - began) * 1000 / 2
        reading = ClockReading(venue_ms - asked_ms - half_ms, half_ms, asked_ms)
        self._offset_ms = reading.offset_ms
        # What is signed without a permit, look-ups and cancels, follows the venue's clock too.
        client.options["timeDifference"] = -round(reading.offset_ms)
        return reading

    # ---- orders

    async def place(self, order: OrderSpec, permit: Permit) -> PlaceAnswer:
        began_ms, error = self._wall_ms(), None
        with recording(permit) as kept:
            try:
                market = self._markets.get(order.symbol)
                if market is None:
                    raise RuntimeError(f"symbol: {order.symbol!r} is not connected")
                orders.check(order, market, self.settings.exchange)
                arguments = orders.arguments(order, permit, self.profile)
                await self._client.create_order(**arguments)
            except Exception as raised:
                error = raised
        return self._placed(order, permit, kept, error, began_ms)

    def _placed(
        self,
        order: OrderSpec,
        permit: Permit,
        kept: Recording,
        error: Exception | None,
        began_ms: int,
    ) -> PlaceAnswer:
        ours = OrderName(permit.client_order_id, order.symbol, order.side)
        answer = answer_of(ours, kept, error, self._symbol_of)
        outcome, why = classify(answer, self.settings.exchange)
        evidence = self._evidence("create_order", kept.create, error, began_ms)
        limited = self._limited_until(kept.create, answer.message)
        if outcome is Outcome.ACCEPTED:
            report = read_one(kept.create, self._symbol_of)
            if report is not None:
                return PlaceAnswer(outcome, evidence, report, limited_until_desk_ms=limited)
            outcome, why = Outcome.UNKNOWN, "the answer names our order, but cannot be read"
        refused_here = str(error) if isinstance(error, orders.OrderRefusedError) else ""
        message = answer.message or refused_here or evidence.error or why
        return PlaceAnswer(outcome, evidence, None, message, limited)

    async def cancel(
        self, symbol: str, client_order_id: str, venue_order_id: str | None
    ) -> CancelAnswer:
        if not (venue_order_id or client_order_id).strip():
            raise ValueError("cancel needs an order ID: an empty one can mean every order")
        params = {} if venue_order_id else {"clientOrderId": client_order_id}
        kept, error, began_ms = await self._ask(
            lambda client: client.cancel_order(venue_order_id or "", symbol, params)
        )
        wire, words = kept.last, binance.error_of(payload_of(kept.last))[1]
        evidence = self._evidence("cancel_order", wire, error, began_ms)
        report = read_one(wire, self._symbol_of)
        return CancelAnswer(
            done=report is not None,
            evidence=evidence,
            report=report,
            message="" if report is not None else words or evidence.error,
            limited_until_desk_ms=self._limited_until(wire, words),
        )

    # ---- look-ups

    async def look(
        self,
        rung: Rung,
        symbol: str,
        *,
        client_order_id: str = "",
        venue_order_id: str = "",
        since_venue_ms: int | None = None,
    ) -> Look:
        wanted = Wanted(rung, symbol, client_order_id, venue_order_id, since_venue_ms)
        page_size = self.profile.page_size
        kept, error, began_ms = await self._ask(wanted.request(page_size))
        wire, words = kept.last, binance.error_of(payload_of(kept.last))[1]
        evidence = self._evidence(f"look:{rung.value}", wire, error, began_ms)
        limited = self._limited_until(wire, words)
        found = read_look(rung, wire, self._symbol_of)
        if found is None:
            return Look(rung, False, evidence, limited_until_desk_ms=limited)
        reports, trades = found
        full = max(len(reports), len(trades)) >= page_size and rung is not Rung.OPEN_ORDERS
        complete = not full and self._reaches(wanted)
        return Look(rung, True, evidence, reports, trades, complete, limited)

    def _reaches(self, wanted: Wanted) -> bool:
        """Whether the list's window goes back as far as was asked for."""
        window_ms, since_ms = self.profile.window_ms, wanted.since_venue_ms
        if wanted.rung not in (Rung.CLOSED_ORDERS, Rung.TRADES) or wanted.venue_order_id:
            return True
        if window_ms is None or since_ms is None:
            return True
        return self._wall_ms() + self._offset_ms - since_ms < window_ms

    # ---- stream and end

    def stream(self) -> AsyncIterator[OrderReport] | None:
        if not (self.profile.stream and self.settings.stream):
            return None
        stream = Stream(self._client, self._read_push, self._describe)
        self._streams = [open_ for open_ in self._streams if not open_.closed] + [stream]
        return stream.reports()

    async def close(self) -> None:
        for stream in self._streams:
            stream.close()
        self._streams.clear()
        self._closed = True
        if self._opened is None:
            return
        client, session = self._opened
        self._opened = None
        try:
            await client.close()
        finally:
            await session.close()

    # ---- what they share

    @property
    def _client(self) -> Any:
        """Raises RuntimeError after close(), until it is connected anew."""
        if self._closed:
            raise RuntimeError(f"the gateway of {self.settings.account} is closed")
        if self._opened is None:
            self._opened = open_client(self.settings, self.profile, self._wall_ms, self._heard)
        return self._opened[0]

    def _heard(self, message: dict[str, Any]) -> bool:
        """Take every event; True where it was one. Orders' go to the streams, others nowhere.

        Raises ConnectError at the venue's end of the stream: the client then connects anew.
        """
        event = binance.event_of(message)
        if event is None:
            return False
        if event["e"] == binance.LAST_EVENT:
            raise ConnectError("the venue ended the stream")
        if event["e"] == binance.ORDER_EVENT:
            for stream in self._streams:
                stream.put(event)
        return True

    async def _ask(
        self, request: Callable[[Any], Awaitable[Any]]
    ) -> tuple[Recording, Exception | None, int]:
        began_ms, error = self._wall_ms(), None
        with recording() as kept:
            try:
                await request(self._client)
            except Exception as raised:
                error = raised
        return kept, error, began_ms

    def _symbol_of(self, name: str) -> str:
        return self._symbols.get(name, name)

    def _read_push(self, event: Any) -> OrderReport:
        return binance.read_push(event, self._symbol_of)

    def _limited_until(self, wire: Wire | None, words: str) -> int | None:
        """When the venue may be asked again, on our clock; None where the answer does not tell."""
        if wire is None or wire.status not in LIMIT_STATUSES:
            return None
        ends = []
        if wire.retry_after.isdecimal():
            ends.append(self._wall_ms() + int(wire.retry_after) * 1000)
        banned_ms = binance.banned_until_venue_ms(words)
        if banned_ms is not None:
            ends.append(int(banned_ms - self._offset_ms) + 1)
        return max(ends, default=None)

    def _evidence(
        self, call: str, wire: Wire | None, error: Exception | None, began_ms: int
    ) -> Evidence:
        told = "" if error is None else self._describe(error)
        if wire is None:
            return Evidence(call, "", False, began_ms, 0.0, error=told)
        return Evidence(
            call=call,
            request=wire.shown,
            sent=wire.sent,
            at_desk_ms=began_ms,
            elapsed_ms=round(wire.elapsed_ms, 3),
            status=wire.status,
            body=self._scrub(wire.text[: 2 * MAX_BODY])[:MAX_BODY],
            error=told,
        )

    def _describe(self, error: BaseException) -> str:
        """Class and words, secrets removed: ccxt puts the signed address into its messages."""
        cause = error.__cause__
        said = f"{type(error).__name__}: {error}"
        if cause is not None:
            said = f"{type(error).__name__} from {type(cause).__name__}: {cause}"
        return self._scrub(said)[:MAX_ERROR]

    def _scrub(self, text: str) -> str:
        return self._opened[1].scrub(text) if self._opened is not None else text


def _market_info(market: Any) -> MarketInfo:
    precision, limits = market["precision"], market["limits"]
    return MarketInfo(
        symbol=market["symbol"],
        base=market["base"],
        quote=market["quote"],
        quantity_step=_rule(precision["amount"]),
        price_tick=_rule(precision["price"]),
        min_quantity=_rule(limits["amount"]["min"]),
        max_quantity=_rule(limits["amount"]["max"]),
        min_notional=_rule(limits["cost"]["min"]),
    )


def _rule(value: str | None) -> Decimal | None:
    """A rule of the market; zero stands for none."""
    try:
        number = None if value is None else Decimal(value)
    except InvalidOperation:
        return None
    return number or None
