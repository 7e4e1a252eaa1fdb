"""HTTP: reads a request, writes it down, lets the faults have their say, executes, answers."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import time
from dataclasses import dataclass, field
from random import Random
from typing import Any
from weakref import WeakKeyDictionary

from aiohttp import web

from venues.simulator import admin
from venues.simulator.clock import Clock
from venues.simulator.dialect import JSON_TYPE, Answer, Call, Dialect, Special
from venues.simulator.exchange import Exchange, Rules
from venues.simulator.faults import Plan, hides_of
from venues.simulator.ledger import CreateRequest, Ledger
from venues.simulator.streams import Streams

HELD_POLL_S = 0.2  # how soon a held connection is noticed to be gone


@dataclass(slots=True)
class Connection:
    """One TCP connection: its number, and how many requests came over it."""

    number: int
    served: int = 0


@dataclass(slots=True)
class State:
    """Everything that one simulator is made of."""

    clock: Clock
    exchange: Exchange
    plan: Plan
    ledger: Ledger
    streams: Streams
    dialect: Dialect
    coin: Random
    seed: int
    started_with: Rules
    limited_until_s: float = 0.0  # monotonic
    limited_status: int = 429
    connections: WeakKeyDictionary[Any, Connection] = field(default_factory=WeakKeyDictionary)
    connection_count: int = 0

    def connection_of(self, request: web.BaseRequest) -> Connection:
        """The connection's record, with this request counted."""
        connection = self.connections.get(request.transport)
        if connection is None:
            self.connection_count += 1
            connection = self.connections[request.transport] = Connection(self.connection_count)
        connection.served += 1
        return connection

    def set_limit(self, status: int, retry_after_s: float) -> None:
        """Refuse every request of the venue's API from now on, for so long."""
        self.limited_until_s = time.monotonic() + retry_after_s
        self.limited_status = status


class Handler:
    """Serves every request of one simulator."""

    def __init__(self, state: State) -> None:
        self._state = state

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = self._state.connection_of(request)
        path, _, query = request.raw_path.partition("?")
        if path.startswith("/_"):
            return await admin.answer(self._state, request, path)
        if path == self._state.dialect.stream_path:
            return await self._state.dialect.stream(request)
        body = await request.read() if request.can_read_body else b""
        call = self._state.dialect.read(request.method, path, query, body, request.headers)
        record = self._note(call, connection)
        reused = connection.served > 1
        actions = self._state.plan.for_call(call, reused) if self._state.plan.faults else {}
        if actions:
            return await self._with_faults(request, call, record, actions)
        answer = self._limit_answer(record) or self._execute(call, record, {})
        return self._send(answer, record)

    def _note(self, call: Call, connection: Connection) -> CreateRequest | None:
        state = self._state
        state.ledger.calls[call.endpoint, call.symbol, call.client_order_id] += 1
        if call.endpoint != "create":
            return None
        shown = state.dialect.shown_params(call)
        record = state.ledger.note(call.method, call.path, shown, call.symbol, call.client_order_id)
        record.connection, record.request_on_connection = connection.number, connection.served
        return record

    def _limit_answer(self, record: CreateRequest | None) -> Answer | None:
        left_s = self._state.limited_until_s - time.monotonic()
        if left_s <= 0:
            return None
        _settle(record, "limited")
        return self._state.dialect.limited(self._state.limited_status, left_s)

    # ---- faults, in the order in which they would meet a request on its way

    async def _with_faults(
        self,
        request: web.BaseRequest,
        call: Call,
        record: CreateRequest | None,
        actions: dict[str, Any],
    ) -> web.StreamResponse:
        self._switch(actions)
        if "unreachable" in actions:
            return await self._lost(request, record, {})
        await asyncio.sleep(actions.get("delay_before_ms", 0) / 1000)
        if record is not None and record.forgotten:
            return await self._lost(request, record, {})
        if "drop_before" in actions:
            return await self._lost(request, record, actions["drop_before"])
        answer = self._limit_answer(record) or self._instead(call, record, actions)
        cut = _cut(actions)
        if cut is not None and "drop_after" not in actions and not cut.get("execute", False):
            return await self._lost(request, record, {})
        if answer is None:
            answer = self._execute(call, record, actions)
        await asyncio.sleep(_delay_after_s(actions))
        if cut is not None:
            return await self._hang_up(request, cut)
        if "cut_body" in actions:
            return await _half_answer(request, answer, actions["cut_body"])
        return self._send(answer, record)

    def _switch(self, actions: dict[str, Any]) -> None:
        state = self._state
        if "rate_limit" in actions:
            limit = actions["rate_limit"]
            state.set_limit(limit.get("status", 429), limit["retry_after_s"])
        admin.switch(state, actions)

    def _instead(
        self, call: Call, record: CreateRequest | None, actions: dict[str, Any]
    ) -> Answer | None:
        """The answer of a fault that takes the place of the venue's own; None: there is none."""
        if "refuse" in actions:
            rule = actions["refuse"]
            self._state.dialect.burn(call)
            _settle(record, "refused", rule["code"], rule["msg"])
            return self._state.dialect.error(rule.get("status", 400), rule["code"], rule["msg"])
        if "redirect" in actions:
            rule = actions["redirect"]
            _settle(record, "redirected")
            target = rule.get("to", self._state.dialect.redirect_path)
            query = f"?{call.payload}&signature={call.signature}" if call.method != "POST" else ""
            return Answer(rule.get("status", 307), b"", {"Location": target + query})
        if "respond" in actions:
            return self._respond(call, record, actions)
        return None

    def _respond(self, call: Call, record: CreateRequest | None, actions: dict[str, Any]) -> Answer:
        rule = actions["respond"]
        execute = rule.get("execute", False)
        if rule.get("coin", False):
            execute = self._state.coin.random() < 0.5
        if execute:
            self._execute(call, record, actions)
        else:
            self._state.dialect.burn(call)
            _settle(record, "answered")
        body = rule.get("body", "")
        raw = body if isinstance(body, str) else json.dumps(body)
        return Answer(rule["status"], raw.encode(), dict(rule.get("headers", {})))

    def _execute(self, call: Call, record: CreateRequest | None, actions: dict[str, Any]) -> Answer:
        if actions:
            part = actions.get("partial_fill", {}).get("quantity")
            special = Special(tuple(hides_of(actions)), part, "ignore_id" in actions)
            answer = self._state.dialect.execute(call, special)
        else:
            answer = self._state.dialect.execute(call)
        if record is not None:
            _settle(record, "refused" if answer.code else "executed", answer.code, answer.message)
            record.order_id = answer.order_id
            record.executed_at_ms = time.time() * 1000
        return answer

    async def _lost(
        self, request: web.BaseRequest, record: CreateRequest | None, how: dict[str, Any]
    ) -> web.StreamResponse:
        _settle(record, "dropped")
        return await self._hang_up(request, how)

    async def _hang_up(self, request: web.BaseRequest, how: dict[str, Any]) -> web.StreamResponse:
        """Close without an answer, or hold the connection silently until the client closes it."""
        # aiohttp tells of a connection's end in no other way that leaves the handler running.
        while how.get("hold", False) and request.transport is not None:  # noqa: ASYNC110
            await asyncio.sleep(HELD_POLL_S)
        transport = request.transport
        if transport is not None:
            sock = transport.get_extra_info("socket")
            if how.get("reset", False) and sock is not None:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            transport.abort()
        return web.Response()  # goes nowhere: the connection is gone

    def _send(self, answer: Answer, record: CreateRequest | None) -> web.Response:
        if record is not None:
            record.answered = True
        response = web.Response(status=answer.status, body=answer.body, headers=answer.headers)
        if "Content-Type" not in answer.headers:
            response.headers["Content-Type"] = JSON_TYPE
        return response


def _settle(
    record: CreateRequest | None, outcome: str, code: int | None = None, message: str = ""
) -> None:
    if record is not None:
        record.outcome, record.code, record.message = outcome, code, message


def _cut(actions: dict[str, Any]) -> dict[str, Any] | None:
    """The fault that leaves the client without an answer, where there is one."""
    cut: dict[str, Any] | None = actions.get("drop_after", actions.get("close_reused"))
    return cut


def _delay_after_s(actions: dict[str, Any]) -> float:
    pushed_ms = actions.get("push_before_answer", {}).get("delay_ms", 0)
    return float(actions.get("delay_after_ms", 0) + pushed_ms) / 1000


async def _half_answer(
    request: web.BaseRequest, answer: Answer, rule: dict[str, Any]
) -> web.StreamResponse:
    """Start the answer with its right length, and close in the middle of the body."""
    keep = rule.get("keep_bytes", int(len(answer.body) * rule.get("fraction", 0.5)))
    response = web.StreamResponse(status=answer.status, headers=answer.headers)
    response.headers["Content-Type"] = JSON_TYPE
    if rule.get("chunked", False):
        response.enable_chunked_encoding()
    else:
        response.content_length = len(answer.body)
    await response.prepare(request)
    if keep:
        await response.write(answer.body[: min(keep, len(answer.body) - 1)])
    if request.transport is not None:
        request.transport.close()
    return response
