"""The order stream, event by event. (ccxt.pro shows an order's latest state only.)"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import time
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlencode

import aiohttp
import pytest
import pytest_asyncio

from tests.simulator.wire import Wire
from tests.support.simulator import API_KEY, SECRET, Simulator, fault, late

pytestmark = pytest.mark.asyncio

BOUND_S = 5.0


class Stream:
    """One WebSocket that has subscribed."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket

    async def call(self, method: str, secret: str = SECRET, **params: Any) -> dict[str, Any]:
        params = dict(sorted({"apiKey": API_KEY, "timestamp": _now_ms(), **params}.items()))
        text = urlencode(params).encode()
        params["signature"] = hmac.new(secret.encode(), text, hashlib.sha256).hexdigest()
        await self._socket.send_json({"id": "1", "method": method, "params": params})
        return dict(await self._socket.receive_json(timeout=BOUND_S))

    async def subscribe(self) -> None:
        answer = await self.call("userDataStream.subscribe.signature")
        assert answer == {"id": "1", "status": 200, "result": {"subscriptionId": 0}}

    async def event(self) -> dict[str, Any]:
        message = await self._socket.receive_json(timeout=BOUND_S)
        assert message["subscriptionId"] == 0
        return dict(message["event"])

    async def events(self, count: int) -> list[str]:
        """The client ID, execution type and order status of so many events."""
        events = [await self.event() for _ in range(count)]
        return [f"{e['C'] or e['c']} {e['x']} {e['X']}" for e in events]

    async def ends(self) -> bool:
        message = await self._socket.receive(timeout=BOUND_S)
        return message.type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED)


def _now_ms() -> int:
    return int(time.time() * 1000)


@pytest_asyncio.fixture
async def socket(sim: Simulator) -> AsyncIterator[Stream]:
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(f"ws://127.0.0.1:{sim.port}/ws-api/v3") as socket,
    ):
        yield Stream(socket)


@pytest_asyncio.fixture
async def stream(socket: Stream) -> Stream:
    await socket.subscribe()
    return socket


async def test_every_step_of_an_order_is_told(
    sim: Simulator, wire: Wire, symbol: str, stream: Stream
) -> None:
    wire.limit(symbol, "s1")
    sim.fill(symbol, client_order_id="s1", quantity="0.4")
    wire.cancel(symbol, "s1")
    wire.create(symbol, "s2", quantity="300")
    wire.limit(symbol, "s3", price="100", quantity="300", timeInForce="IOC")
    wire.create(symbol, "s4", type="LIMIT_MAKER", price="100")
    assert await stream.events(10) == [
        "s1 NEW NEW",
        "s1 TRADE PARTIALLY_FILLED",
        "s1 CANCELED CANCELED",
        "s2 NEW NEW",
        "s2 TRADE PARTIALLY_FILLED",
        "s2 TRADE FILLED",
        "s3 NEW NEW",
        "s3 TRADE PARTIALLY_FILLED",
        "s3 EXPIRED EXPIRED",
        "s4 REJECTED REJECTED",
    ]


async def test_a_trade_event_agrees_with_the_ledger(
    sim: Simulator, wire: Wire, symbol: str, stream: Stream
) -> None:
    wire.create(symbol, "s1")
    await stream.event()
    trade = await stream.event()
    [execution] = sim.ledger("s1")["executions"]
    assert (trade["t"], trade["i"]) == (execution["trade_id"], execution["order_id"])
    assert (trade["l"], trade["L"], trade["z"]) == ("1.00000000", "100.00000000", "1.00000000")
    assert (trade["n"], trade["N"]) == ("0.00100000", symbol.removesuffix("USDT"))


async def test_what_happens_during_a_silence_is_lost(
    sim: Simulator, wire: Wire, symbol: str, stream: Stream
) -> None:
    sim.faults(fault(None, action={"stream_silence": {"for_s": 600}}))
    wire.create(symbol, "s1")
    state = sim.ledger()["stream"]
    assert (state["subscribers"], state["sent"], state["lost"]) == (1, 0, 2)
    sim.clear_faults()
    wire.limit(symbol, "s2")
    assert await stream.events(1) == ["s2 NEW NEW"]


async def test_a_silence_may_begin_with_a_request(
    sim: Simulator, wire: Wire, symbol: str, stream: Stream
) -> None:
    sim.faults(fault(action={"stream_silence": {"for_s": 600}}, symbol=symbol, ordinal=2))
    for client_id in ("s1", "s2", "s3"):
        wire.limit(symbol, client_id)
    assert await stream.events(1) == ["s1 NEW NEW"]
    assert sim.ledger()["stream"]["lost"] == 2


async def test_single_events_are_lost_or_repeated(
    sim: Simulator, wire: Wire, symbol: str, stream: Stream
) -> None:
    sim.faults(
        fault(None, symbol=symbol, ordinal=2, action={"stream_drop_event": {"kind": "TRADE"}}),
        fault(None, client_order_id="s1", action={"stream_duplicate": {"kind": "NEW"}}),
    )
    wire.create(symbol, "s1", quantity="450")  # three fills
    events = [await stream.event() for _ in range(4)]
    assert [(e["x"], e["l"][:3]) for e in events] == [
        ("NEW", "0.0"), ("NEW", "0.0"), ("TRADE", "200"), ("TRADE", "50."),
    ]  # fmt: skip


async def test_a_dropped_stream_is_closed(sim: Simulator, stream: Stream) -> None:
    sim.faults(fault(None, action={"stream_drop": True}))
    assert await stream.ends()
    assert sim.ledger()["stream"]["subscribers"] == 0


@pytest.mark.parametrize("push", [True, False])
async def test_the_stream_speaks_while_the_request_is_unanswered(
    sim: Simulator, wire: Wire, symbol: str, stream: Stream, push: bool
) -> None:
    action = {"push_before_answer": {"delay_ms": 60_000}}
    sim.faults(fault(action=action) if push else late(after_ms=60_000))
    creating = asyncio.create_task(asyncio.to_thread(_create_unanswered, wire, symbol))
    assert await stream.events(1) == ["s1 NEW NEW"]
    assert sim.ledger("s1")["requests"][0]["answered"] is False
    await creating


def _create_unanswered(wire: Wire, symbol: str) -> None:
    with pytest.raises(OSError, match="timed out"):
        wire.limit(symbol, "s1", timeout_s=1)


async def test_nothing_is_told_without_a_valid_subscription(
    sim: Simulator, wire: Wire, symbol: str, socket: Stream
) -> None:
    method = "userDataStream.subscribe.signature"
    forged = await socket.call(method, secret="other")
    old = await socket.call(method, timestamp=_now_ms() - 10_000)
    unknown = await socket.call("order.place")
    assert [a["error"]["code"] for a in (forged, old, unknown)] == [-1022, -1021, -1020]
    wire.create(symbol)
    assert sim.ledger()["stream"]["subscribers"] == 0
    assert (await socket.call("ping"))["result"] == {}
