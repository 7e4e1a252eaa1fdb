"""The order stream: userDataStream.subscribe.signature of binance's WebSocket API.

Source: spot API docs, "WebSocket API: User Data Stream requests" and "User Data Streams". Events
come wrapped: {"subscriptionId": 0, "event": {"e": "executionReport", ...}}.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

from aiohttp import WSMsgType, web

from venues.simulator.binance.errors import REJECT_WORDS, ApiError
from venues.simulator.binance.shapes import money
from venues.simulator.binance.signing import Gate
from venues.simulator.exchange import Exchange
from venues.simulator.orders import Event, Reason
from venues.simulator.streams import Streams, Subscriber


async def serve_stream(
    request: web.BaseRequest, exchange: Exchange, streams: Streams, gate: Gate
) -> web.StreamResponse:
    """One connection: answers its requests, and pushes events once it has subscribed."""
    socket = web.WebSocketResponse()
    if not socket.can_prepare(request).ok:
        return web.Response(status=400, text="this path speaks WebSocket only")
    await socket.prepare(request)
    session = Session(socket, exchange, streams, gate)
    sender = asyncio.create_task(session.send_events())
    try:
        async for message in socket:
            if message.type is WSMsgType.TEXT:
                await socket.send_str(json.dumps(session.answer(message.data)))
    finally:
        session.leave()
        sender.cancel()
        with contextlib.suppress(asyncio.CancelledError, ConnectionError):
            await sender
    return socket


class Session:
    """What one connection of the WebSocket API has asked for."""

    def __init__(
        self, socket: web.WebSocketResponse, exchange: Exchange, streams: Streams, gate: Gate
    ) -> None:
        self._socket = socket
        self._exchange = exchange
        self._streams = streams
        self._gate = gate
        self._subscriber = Subscriber(render)
        self._subscribed = False

    def answer(self, text: str) -> dict[str, Any]:
        """One request of the client, as text."""
        try:
            request = json.loads(text)
            method, params = request["method"], request.get("params") or {}
            params = {key: str(value) for key, value in params.items()}
        except (ValueError, KeyError, TypeError, AttributeError):
            return _failed(None, ApiError(-1000, "Malformed request."))
        number = request.get("id")
        try:
            return {"id": number, "status": 200, "result": self._do(method, params)}
        except ApiError as error:
            return _failed(number, error)

    def _do(self, method: str, params: dict[str, str]) -> dict[str, Any]:
        if method == "ping":
            return {}
        if method == "time":
            return {"serverTime": self._exchange.clock.now_ms()}
        if method == "userDataStream.subscribe.signature":
            return self._subscribe(params)
        if method == "userDataStream.unsubscribe":
            self.leave()
            return {}
        raise ApiError(-1020, f"Method {method} is not supported.")

    def _subscribe(self, params: dict[str, str]) -> dict[str, Any]:
        self._gate.check_key(params.get("apiKey"))
        # Signed is every parameter but the signature, in the order of the names.
        signed = "&".join(f"{k}={params[k]}" for k in sorted(params) if k != "signature")
        self._gate.check_signature(signed, params.get("signature"))
        self._gate.check_age(params, honour_expiry=self._exchange.rules.honour_expiry)
        if self._subscribed:
            raise ApiError(-2035, "Subscription already active.")
        self._subscribed = True
        self._streams.join(self._subscriber)
        return {"subscriptionId": 0}

    def leave(self) -> None:
        self._streams.leave(self._subscriber)
        self._subscribed = False

    async def send_events(self) -> None:
        """Until the stream is dropped."""
        while (text := await self._subscriber.queue.get()) is not None:
            await self._socket.send_str(text)
        await self._socket.close()


def _failed(number: Any, error: ApiError) -> dict[str, Any]:
    return {
        "id": number,
        "status": error.status,
        "error": {"code": error.code, "msg": error.message},
    }


def render(event: Event) -> str:
    """An executionReport, as text."""
    order, execution = event.order, event.execution
    last = execution.quantity if execution else None
    last_price = execution.price if execution else None
    report = {
        "e": "executionReport",
        "E": event.at_ms,
        "s": order.symbol,
        # A cancel has a client ID of its own; the order's is then the original one.
        "c": event.cancel_id or order.client_order_id,
        "S": order.side,
        "o": order.type,
        "f": order.time_in_force,
        "q": money(order.quantity),
        "p": money(order.price),
        "P": money(None),
        "F": money(None),
        "g": -1,
        "C": order.client_order_id if event.cancel_id else "",
        "x": event.kind,
        "X": (event.says or order.status).value,
        "r": _reject_word(event.reason),
        "i": order.order_id,
        "l": money(last),
        "z": money(order.executed),
        "L": money(last_price),
        "n": money(execution.commission) if execution else "0",
        "N": execution.commission_asset if execution else None,
        "T": order.updated_ms,
        "t": execution.trade_id if execution else -1,
        "w": event.kind == "NEW",
        "m": execution.maker if execution else False,
        "M": False,
        "O": order.created_ms,
        "Z": money(order.quote_spent),
        "Y": money(last_price * last if last_price and last else None),
        "Q": money(None),
        "W": order.created_ms,
        "V": "NONE",
    }
    return json.dumps({"subscriptionId": 0, "event": report}, separators=(",", ":"))


def _reject_word(reason: Reason | None) -> str:
    return "NONE" if reason is None else REJECT_WORDS[reason]
