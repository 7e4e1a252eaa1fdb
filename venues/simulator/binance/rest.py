"""Binance's signed endpoints: create, query, cancel, and the lists."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from aiohttp import web

from venues.simulator.binance import create, shapes
from venues.simulator.binance.create import whole
from venues.simulator.binance.errors import ApiError, missing, refusal
from venues.simulator.binance.public import PUBLIC
from venues.simulator.binance.signing import Gate
from venues.simulator.binance.stream import serve_stream
from venues.simulator.dialect import PLAIN, Answer, Call, Special, plain_params
from venues.simulator.exchange import COMMISSION, Exchange
from venues.simulator.orders import Order, RefusedError
from venues.simulator.streams import Streams

DAY_MS = 86_400_000
DEFAULT_LIMIT = 500
MAX_LIMIT = 1000
SECRETS = frozenset({"signature", "apiKey"})

Item = TypeVar("Item")

UNKNOWN_ORDER = (-2011, "Unknown order sent.")
NO_ORDER = (-2013, "Order does not exist.")


class Binance:
    """The spot REST API over one engine."""

    stream_path = "/ws-api/v3"
    redirect_path = "/api/v3/order/moved"

    def __init__(
        self, exchange: Exchange, streams: Streams, secret: str, keys: frozenset[str]
    ) -> None:
        self._exchange = exchange
        self._streams = streams
        self._gate = Gate(exchange.clock, secret, keys)
        self._cancels = 0
        self._routes: dict[tuple[str, str], tuple[str, Callable[[Call, Special], Any]]] = {
            ("POST", "/api/v3/order"): ("create", self._create),
            ("POST", self.redirect_path): ("create", self._create),
            ("GET", "/api/v3/order"): ("query", self._query),
            ("DELETE", "/api/v3/order"): ("cancel", self._cancel),
            ("GET", "/api/v3/openOrders"): ("open_orders", self._open_orders),
            ("DELETE", "/api/v3/openOrders"): ("cancel_all", self._cancel_all),
            ("GET", "/api/v3/allOrders"): ("all_orders", self._all_orders),
            ("GET", "/api/v3/myTrades"): ("trades", self._trades),
            ("GET", "/api/v3/account"): ("account", self._account),
            # ccxt asks for these while it loads markets; there is no wallet and no margin here.
            ("GET", "/sapi/v1/capital/config/getall"): ("currencies", self._nothing),
            ("GET", "/sapi/v1/margin/allPairs"): ("margin_pairs", self._nothing),
            ("GET", "/sapi/v1/margin/isolated/allPairs"): ("margin_pairs", self._nothing),
        }

    # ---- the dialect's contract

    def read(
        self, method: str, path: str, query: str, body: bytes, headers: Mapping[str, str]
    ) -> Call:
        text = query + body.decode("utf-8", "replace") if body else query
        payload, signature = _split_signature(text)
        pairs = parse_qsl(text, keep_blank_values=True) if text else ()
        params = dict(pairs)
        route = self._routes.get((method, path))
        endpoint = route[0] if route is not None else path.rpartition("/")[2]
        call = Call(endpoint, method, path, params, params.get("symbol", ""), "", payload)
        call.signature, call.headers = signature, headers
        call.client_order_id = self._named_order(call)
        return call

    def _named_order(self, call: Call) -> str:
        name = "newClientOrderId" if call.endpoint == "create" else "origClientOrderId"
        if name in call.params or "orderId" not in call.params:
            return call.params.get(name, "")
        number = call.params["orderId"]
        order = self._exchange.orders.get(int(number)) if number.isdecimal() else None
        return order.client_order_id if order is not None else ""

    def shown_params(self, call: Call) -> dict[str, str]:
        return plain_params(call.params, SECRETS)

    def execute(self, call: Call, special: Special = PLAIN) -> Answer:
        try:
            if call.path in PUBLIC and call.method == "GET":
                return _json(PUBLIC[call.path](self._exchange, call.params))
            route = self._routes.get((call.method, call.path))
            if route is None:
                return Answer(404, b'{"code":-1000,"msg":"No such endpoint."}', code=-1000)
            self._gate.check_key(call.headers.get("X-MBX-APIKEY"))
            self._gate.check_signature(call.payload, call.signature)
            honour_expiry = self._exchange.rules.honour_expiry
            self._gate.check_age(call.params, honour_expiry=honour_expiry)
            done = route[1](call, special)
            if call.endpoint == "create":
                return done  # type: ignore[no-any-return]  # it has made its own answer
            return _json(done)
        except RefusedError as refused:
            return self._error(refusal(refused.reason))
        except ApiError as error:
            return self._error(error)

    def burn(self, call: Call) -> None:
        if call.endpoint == "create":
            self._exchange.burn(call.symbol, call.client_order_id)

    def error(self, status: int, code: int, message: str) -> Answer:
        return self._error(ApiError(code, message, status))

    def _error(self, error: ApiError) -> Answer:
        body = json.dumps({"code": error.code, "msg": error.message}).encode()
        return Answer(error.status, body, code=error.code, message=error.message)

    def limited(self, status: int, retry_after_s: float) -> Answer:
        if status == 418:
            until_ms = int(self._exchange.clock.now_ms() + retry_after_s * 1000)
            message = f"Way too much request weight used; IP banned until {until_ms}."
        else:
            message = (
                "Too much request weight used; current limit is 6000 request weight per 1 MINUTE."
            )
        answer = self._error(ApiError(-1003, message, status))
        answer.headers["Retry-After"] = str(max(1, round(retry_after_s + 0.5)))
        return answer

    async def stream(self, request: web.BaseRequest) -> web.StreamResponse:
        return await serve_stream(request, self._exchange, self._streams, self._gate)

    # ---- endpoints

    def _create(self, call: Call, special: Special) -> Answer:
        answer_type = create.answer_type(call.params)
        try:
            ticket = create.ticket_of(call.params, self._exchange)
        except (ApiError, RefusedError):
            self.burn(call)
            raise
        order = self._exchange.place(ticket, at_once=special.at_once, hides=special.hides)
        shape = shapes.CREATE_ANSWERS[answer_type]
        answer = _json(shape(order, order.updated_ms))
        answer.order_id = order.order_id
        return answer

    def _query(self, call: Call, special: Special) -> Any:
        symbol = self._symbol(call)
        if special.other_order:
            return shapes.query(self._other(symbol, call.client_order_id))
        order = self._find(call, symbol)
        if order is None or order.hidden_from("query", time.monotonic()):
            raise ApiError(*NO_ORDER)
        return shapes.query(order)

    def _other(self, symbol: str, client_order_id: str) -> Order:
        """Somebody else's order: of this symbol if there is one, of any other if not."""
        of_symbol = self._exchange.orders_of(symbol)
        for orders in (of_symbol, list(self._exchange.orders.values())):
            for order in reversed(orders):
                if order.client_order_id != client_order_id:
                    return order
        raise ApiError(*NO_ORDER)

    def _find(self, call: Call, symbol: str) -> Order | None:
        """By orderId, which takes precedence, or by origClientOrderId: the newest with that ID."""
        number = whole(call.params, "orderId")
        if number is not None:
            order = self._exchange.orders.get(number)
            return order if order is not None and order.symbol == symbol else None
        if not call.params.get("origClientOrderId"):
            raise ApiError(
                -1102,
                "Param 'origClientOrderId' or 'orderId' must be sent, but both were empty/null!",
            )
        orders = self._exchange.by_client_id(symbol, call.params["origClientOrderId"])
        return orders[-1] if orders else None

    def _cancel(self, call: Call, special: Special) -> Any:
        order = self._find(call, self._symbol(call))
        if order is None or not order.is_open or order.hidden_from("cancel", time.monotonic()):
            raise ApiError(*UNKNOWN_ORDER)
        return self._cancel_one(order, create.client_id(call.params, "newClientOrderId"))

    def _cancel_one(self, order: Order, cancel_id: str) -> dict[str, Any]:
        self._cancels += 1
        cancel_id = cancel_id or f"cancel{self._cancels}"
        self._exchange.cancel(order, cancel_id)
        return shapes.canceled(order, cancel_id)

    def _cancel_all(self, call: Call, special: Special) -> Any:
        orders = self._exchange.open_orders(self._symbol(call))
        if not orders:
            raise ApiError(*UNKNOWN_ORDER)
        return [self._cancel_one(order, "") for order in orders]

    def _open_orders(self, call: Call, special: Special) -> Any:
        symbol = self._symbol(call) if "symbol" in call.params else None
        now_s = time.monotonic()
        return [
            shapes.query(order)
            for order in self._exchange.open_orders(symbol)
            if not order.hidden_from("open_orders", now_s)
        ]

    def _all_orders(self, call: Call, special: Special) -> Any:
        """Ascending; with orderId from there on, else the newest, as binance does it."""
        symbol = self._symbol(call)
        start_ms, end_ms, limit = _window(call.params)
        first = whole(call.params, "orderId")
        now_s = time.monotonic()
        orders = [
            order
            for order in self._exchange.orders_of(symbol)
            if (first is None or order.order_id >= first)
            and (start_ms is None or order.created_ms >= start_ms)
            and (end_ms is None or order.created_ms <= end_ms)
            and not order.hidden_from("all_orders", now_s)
        ]
        from_start = first is not None or start_ms is not None
        return [shapes.query(order) for order in _page(orders, limit, from_start)]

    def _trades(self, call: Call, special: Special) -> Any:
        symbol = self._symbol(call)
        start_ms, end_ms, limit = _window(call.params)
        number, first = whole(call.params, "orderId"), whole(call.params, "fromId")
        now_s = time.monotonic()
        executions = [
            execution
            for execution in self._exchange.executions.get(symbol, ())
            if (number is None or execution.order_id == number)
            and (first is None or execution.trade_id >= first)
            and (start_ms is None or execution.at_ms >= start_ms)
            and (end_ms is None or execution.at_ms <= end_ms)
            and not self._exchange.orders[execution.order_id].hidden_from("trades", now_s)
        ]
        from_start = first is not None or start_ms is not None
        return [shapes.trade(execution) for execution in _page(executions, limit, from_start)]

    def _account(self, call: Call, special: Special) -> Any:
        now_ms = self._exchange.clock.now_ms()
        return shapes.account(self._exchange.balances, now_ms, COMMISSION)

    def _nothing(self, call: Call, special: Special) -> Any:
        return []

    def _symbol(self, call: Call) -> str:
        if not call.symbol:
            raise missing("symbol")
        return self._exchange.market(call.symbol).symbol


def _json(value: Any) -> Answer:
    return Answer(200, json.dumps(value, separators=(",", ":")).encode())


def _split_signature(text: str) -> tuple[str, str | None]:
    """What was signed, and the signature: the parameter may stand anywhere."""
    head, mark, tail = text.rpartition("signature=")
    if not mark or (head and not head.endswith("&")):
        return text, None
    signature, more, rest = tail.partition("&")
    return head.removesuffix("&") + more + rest, signature


def _window(params: Mapping[str, str]) -> tuple[int | None, int | None, int]:
    start_ms, end_ms = whole(params, "startTime"), whole(params, "endTime")
    # Binance refuses a longer span on allOrders and myTrades.
    if start_ms is not None and end_ms is not None and end_ms - start_ms > DAY_MS:
        raise ApiError(-1127, "More than 24 hours between startTime and endTime.")
    limit = whole(params, "limit", DEFAULT_LIMIT)
    if not limit:
        raise ApiError(-1130, "Data sent for parameter 'limit' is not valid.")
    return start_ms, end_ms, min(limit, MAX_LIMIT)


def _page(items: list[Item], limit: int, from_start: bool) -> list[Item]:
    return items[:limit] if from_start else items[-limit:]
