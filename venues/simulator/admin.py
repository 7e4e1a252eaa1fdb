"""The endpoints that begin with an underscore: the truth, the faults, the price, the clock."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from aiohttp import web

from venues.profiles import UsedId
from venues.simulator import fields
from venues.simulator.faults import EVENT_KINDS, Fault, hides_of
from venues.simulator.fields import FieldError
from venues.simulator.ledger import order_json, text
from venues.simulator.orders import Status

if TYPE_CHECKING:
    from venues.simulator.orders import Order
    from venues.simulator.server import State

USED_ID_RULES = tuple(rule.value for rule in UsedId if rule is not UsedId.UNKNOWN)

Endpoint = Callable[["State", web.BaseRequest], Awaitable[Any]]


async def answer(state: State, request: web.BaseRequest, path: str) -> web.Response:
    """Serve one request for the simulator itself."""
    endpoint = ENDPOINTS.get((request.method, path))
    if endpoint is None:
        known = ", ".join(f"{method} {its_path}" for method, its_path in ENDPOINTS)
        return web.json_response(
            {"error": f"no {request.method} {path}; known: {known}"}, status=404
        )
    try:
        return web.json_response(await endpoint(state, request))
    except FieldError as error:
        return web.json_response({"error": str(error)}, status=400)


async def _body(request: web.BaseRequest) -> Any:
    raw = await request.read()
    try:
        return json.loads(raw) if raw else {}
    except ValueError as error:
        raise FieldError(f"body: must be JSON ({error})") from None


def switch(state: State, actions: dict[str, Any]) -> None:
    """Apply the actions that act on the simulator itself."""
    if "clock_offset_ms" in actions:
        state.clock.offset_ms = actions["clock_offset_ms"]
    if "stream_silence" in actions:
        state.streams.silence(actions["stream_silence"]["for_s"])
    if "stream_drop" in actions:
        state.streams.drop_all()


async def _ledger(state: State, request: web.BaseRequest) -> Any:
    known = {"symbol", "client_order_id"}
    for name in request.query:
        if name not in known:
            raise FieldError(f"{name}: unknown; known here: symbol, client_order_id")
    symbol = request.query.get("symbol")
    symbol = fields.symbol(symbol, "symbol") if symbol is not None else None
    shown = state.ledger.as_json(symbol, request.query.get("client_order_id"))
    streams = state.streams
    shown["stream"] = {"subscribers": streams.count, "sent": streams.sent, "lost": streams.lost}
    return shown


async def _faults_shown(state: State, request: web.BaseRequest) -> Any:
    return {"faults": [fault.as_json() for fault in state.plan.faults]}


async def _faults_loaded(state: State, request: web.BaseRequest) -> Any:
    for fault in state.plan.load(await _body(request)):
        if fault.immediate:
            fault.hit(fault.loaded_s)
            switch(state, fault.action)
        _hide_existing(state, fault)
    return await _faults_shown(state, request)


def _hide_existing(state: State, fault: Fault) -> None:
    """A hide that names its order by ID also hides an order that exists already."""
    wanted = fault.match.get("client_order_id")
    if wanted is None:
        return
    for order in state.exchange.orders.values():
        if order.client_order_id == wanted and fault.match.get("symbol") in (None, order.symbol):
            order.hides.extend(hides_of(fault.action))


async def _faults_cleared(state: State, request: web.BaseRequest) -> Any:
    if "symbol" in request.query:
        state.plan.clear(_listed(state, fields.symbol(request.query["symbol"], "symbol")))
        return await _faults_shown(state, request)
    state.plan.clear()
    state.limited_until_s = 0.0
    state.streams.silence(0.0)
    return await _faults_shown(state, request)


async def _reset(state: State, request: web.BaseRequest) -> Any:
    read = fields.record({"symbol": fields.symbol})(await _body(request), "body")
    if "symbol" in read:
        symbol = _listed(state, read["symbol"])
        state.exchange.reset_symbol(symbol)
        state.ledger.forget(symbol)
        state.plan.clear(symbol)
        return {"reset": symbol}
    state.ledger.forget()
    state.exchange.reset()
    state.exchange.rules = replace(state.started_with)
    state.clock.offset_ms = 0.0
    state.streams.sent = state.streams.lost = 0
    state.coin.seed(state.seed)
    await _faults_cleared(state, request)
    return {"reset": "everything"}


def _listed(state: State, symbol: str) -> str:
    if symbol not in state.exchange.markets:
        raise FieldError(f"symbol: {symbol} is not listed; GET /api/v3/exchangeInfo lists them")
    return symbol


async def _price(state: State, request: web.BaseRequest) -> Any:
    reader = fields.record(
        {"symbol": fields.symbol, "price": fields.amount}, required=("symbol", "price")
    )
    read = reader(await _body(request), "body")
    symbol = _listed(state, read["symbol"])
    state.exchange.set_price(symbol, read["price"])
    return {"symbol": symbol, "price": text(read["price"])}


async def _fill(state: State, request: web.BaseRequest) -> Any:
    reader = fields.record(
        {
            "symbol": fields.symbol,
            "client_order_id": fields.string,
            "order_id": fields.count,
            "quantity": fields.amount,
            "late": fields.flag,
        },
        required=("symbol",),
    )
    read = reader(await _body(request), "body")
    late = read.get("late", False)
    order = _named_order(state, read, ended=late)
    quantity = read.get("quantity", order.remaining)
    if not 0 < quantity <= order.remaining:
        raise FieldError(f"body.quantity: the order has only {text(order.remaining)} left")
    (state.exchange.fill_late if late else state.exchange.fill)(order, quantity)
    return order_json(order)


def _named_order(state: State, read: dict[str, Any], *, ended: bool = False) -> Order:
    """The newest that is open, or that has ended."""
    if ("client_order_id" in read) == ("order_id" in read):
        raise FieldError("body: needs client_order_id or order_id, one of them")
    for order in reversed(state.exchange.orders_of(_listed(state, read["symbol"]))):
        named = read.get("order_id") == order.order_id
        named = named or read.get("client_order_id") == order.client_order_id
        if named and order.is_open != ended:
            return order
    what = "ended" if ended else "open"
    raise FieldError(f"body.client_order_id or order_id: names no {what} order of this symbol")


async def _push(state: State, request: web.BaseRequest) -> Any:
    reader = fields.record(
        {
            "symbol": fields.symbol,
            "client_order_id": fields.string,
            "order_id": fields.count,
            "kind": fields.one_of(*EVENT_KINDS),
            "status": fields.one_of(*(status.value for status in Status)),
        },
        required=("symbol", "kind", "status"),
    )
    read = reader(await _body(request), "body")
    order = _named_order(state, read)
    state.exchange.push(order, read["kind"], Status(read["status"]))
    return order_json(order)


async def _clock(state: State, request: web.BaseRequest) -> Any:
    reader = fields.record({"offset_ms": fields.signed}, required=("offset_ms",))
    state.clock.offset_ms = reader(await _body(request), "body")["offset_ms"]
    return {"offset_ms": state.clock.offset_ms}


async def _rules(state: State, request: web.BaseRequest) -> Any:
    reader = fields.record({"used_id": fields.one_of(*USED_ID_RULES), "honour_expiry": fields.flag})
    read = reader(await _body(request), "body")
    rules = state.exchange.rules
    if "used_id" in read:
        rules.used_id = UsedId(read["used_id"])
    rules.honour_expiry = read.get("honour_expiry", rules.honour_expiry)
    return {"used_id": rules.used_id.value, "honour_expiry": rules.honour_expiry}


ENDPOINTS: dict[tuple[str, str], Endpoint] = {
    ("GET", "/_ledger"): _ledger,
    ("GET", "/_faults"): _faults_shown,
    ("POST", "/_faults"): _faults_loaded,
    ("DELETE", "/_faults"): _faults_cleared,
    ("POST", "/_reset"): _reset,
    ("POST", "/_price"): _price,
    ("POST", "/_fill"): _fill,
    ("POST", "/_push"): _push,
    ("POST", "/_clock"): _clock,
    ("POST", "/_rules"): _rules,
}
