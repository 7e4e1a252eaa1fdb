"""Placing an order: what leaves, how often, and what the answer is taken for."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from decimal import Decimal
from typing import Any

import ccxt.async_support
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.simulator import (
    API_KEY,
    SECRET,
    Simulator,
    answered,
    fault,
    late,
    lost_answer,
    refused,
)
from tests.venues.conftest import Connect, new_id, permit_for, until
from tests.venues.rawserver import RawServer, Turn, answer, half, hang_up, hold, order_answer
from venues.ccxt_gateway.orders import plain
from venues.gateway import OrderSpec, OrderStatus, Outcome, PlaceAnswer, monotonic_s
from venues.profiles import Rung

BUY = OrderSpec("BTC/USDT", "buy", "limit", Decimal("0.01"), Decimal(20000))
# Statuses that ccxt 4.5.90 does not map to an exception.
UNMAPPED = (406, 413, 415, 425, 499, 505, 507, 508, 509, 523, 524, 527, 529, 598, 599)


async def test_a_market_order_is_accepted_with_its_executions(
    connect: Connect, sim: Simulator, symbol: str
) -> None:
    gateway = await connect(sim.url, symbols=(symbol,))
    order = OrderSpec(symbol, "buy", "market", Decimal("0.5"))
    done: PlaceAnswer = await gateway.place(order, permit_for(new_id()))
    assert done.outcome is Outcome.ACCEPTED
    assert done.report is not None
    assert (done.report.status, done.report.filled) == (OrderStatus.FILLED, Decimal("0.5"))
    assert done.report.average_price == Decimal(100)
    assert sum(trade.quantity for trade in done.report.trades) == Decimal("0.5")
    assert all(t.venue_order_id == done.report.venue_order_id for t in done.report.trades)
    assert (done.evidence.sent, done.evidence.status, done.message) == (True, 200, "")


async def test_a_limit_order_rests_under_our_id_symbol_and_side(
    connect: Connect, sim: Simulator, symbol: str
) -> None:
    gateway = await connect(sim.url, symbols=(symbol,))
    name = new_id()
    order = OrderSpec(symbol, "sell", "limit", Decimal("0.5"), Decimal("120.05"))
    done: PlaceAnswer = await gateway.place(order, permit_for(name))
    assert done.report is not None
    assert (done.report.client_order_id, done.report.symbol) == (name, symbol)
    assert (done.report.side, done.report.status) == ("sell", OrderStatus.OPEN)
    assert done.report.trades == ()
    [row] = sim.ledger(client_order_id=name)["orders"]
    assert Decimal(row["quantity"]) == Decimal("0.5")
    assert Decimal(row["price"]) == Decimal("120.05")


@pytest.mark.parametrize(
    "turn",
    [
        answer(200, "<html>maintenance</html>"),
        answer(200, ""),
        answer(200, {}),
        answer(200, []),
        answer(200, "null"),
        answer(200, '{"symbol": "BTCUSDT", "orderId": 28, "client'),
        half(order_answer()),
        hang_up,
        order_answer(orderId=None),
        order_answer(orderId=""),
        order_answer(orderId=-1),
        order_answer(clientOrderId="somebody-else"),
        order_answer(clientOrderId=None),
        order_answer(symbol="ETHUSDT"),
        order_answer(side="SELL"),
        order_answer(side=None),
        order_answer(origQty="much"),
        answer(307, "", "Location: /api/v3/order?again=1"),
        answer(308, "", "Location: /api/v3/order?again=1"),
        answer(400, {"code": -1007, "msg": "Timeout waiting for response from backend server."}),
        answer(408, {"code": -1007, "msg": "Send status unknown; execution status unknown."}),
        answer(503, {"code": -1000, "msg": "Unknown error, please check your request"}),
        answer(503, {"code": -2010, "msg": "Account has insufficient balance"}),
        answer(400, {"code": -2010, "msg": "Something new."}),
        answer(400, {"msg": "no code"}),
        answer(400, "not even JSON"),
        answer(403, "<html>forbidden</html>"),
        answer(429, "slow down"),
        answer(504, "<html>gateway time-out</html>"),
        *(answer(status, "<html>oops</html>") for status in UNMAPPED),
        *(answer(status, {}) for status in (500, 502, 520, 521, 522, 530)),
    ],
)
async def test_an_answer_off_the_list_is_unknown_after_one_request(
    connect: Connect, turn: Turn
) -> None:
    async with RawServer(turn) as server:
        gateway = await connect(server.url)
        done: PlaceAnswer = await gateway.place(BUY, permit_for(new_id()))
        assert done.outcome is Outcome.UNKNOWN
        assert done.evidence.sent
        assert done.report is None
        assert done.message
        assert len(server.creates) == 1


async def test_ccxt_alone_would_have_shown_an_order_for_a_page_of_html() -> None:
    """The reason why its return value is never believed."""
    async with RawServer(answer(200, "<html>maintenance</html>")) as server:
        exchange = ccxt.async_support.binance({"apiKey": API_KEY, "secret": SECRET})
        exchange.options.update(fetchMarkets={"types": ["spot"]}, fetchCurrencies=False)
        exchange.options["fetchMargins"] = False
        exchange.urls["api"]["public"] = exchange.urls["api"]["private"] = f"{server.url}/api/v3"
        try:
            order = await exchange.create_order("BTC/USDT", "limit", "buy", "0.01", "20000")
        finally:
            await exchange.close()
        assert order["id"] is None


@pytest.mark.parametrize(
    ("code", "words", "status", "outcome"),
    [
        (-1013, "Filter failure: NOTIONAL", 400, Outcome.REJECTED),
        (-2010, "Account has insufficient balance for requested action.", 400, Outcome.REJECTED),
        (-2015, "Invalid API-key, IP, or permissions for action.", 401, Outcome.REJECTED),
        (-2010, "Duplicate order sent.", 400, Outcome.DUPLICATE),
        (
            -1021,
            "Timestamp for this request is outside of the recvWindow.",
            400,
            Outcome.NOT_PLACED,
        ),
        (-1015, "Too many new orders.", 429, Outcome.NOT_PLACED),
    ],
)
async def test_a_listed_refusal_is_definite_and_carries_the_venues_words(
    connect: Connect,
    sim: Simulator,
    symbol: str,
    code: int,
    words: str,
    status: int,
    outcome: Outcome,
) -> None:
    sim.faults(refused(code, words, status))
    gateway = await connect(sim.url, symbols=(symbol,))
    order = OrderSpec(symbol, "buy", "market", Decimal(1))
    done: PlaceAnswer = await gateway.place(order, permit_for(new_id()))
    assert (done.outcome, done.message) == (outcome, words)
    assert done.evidence.status == status


async def test_a_used_id_is_a_duplicate_while_its_order_is_open(
    connect: Connect, sim: Simulator, symbol: str
) -> None:
    gateway = await connect(sim.url, symbols=(symbol,))
    order = OrderSpec(symbol, "buy", "limit", Decimal(1), Decimal(90))
    name = new_id()
    assert (await gateway.place(order, permit_for(name))).outcome is Outcome.ACCEPTED
    assert (await gateway.place(order, permit_for(name))).outcome is Outcome.DUPLICATE


async def test_an_executed_order_whose_answer_is_lost_is_unknown(
    connect: Connect, sim: Simulator, symbol: str
) -> None:
    sim.faults(lost_answer(symbol=symbol.replace("/", "")))
    gateway = await connect(sim.url, symbols=(symbol,))
    name = new_id()
    done = await gateway.place(OrderSpec(symbol, "buy", "market", Decimal(1)), permit_for(name))
    assert done.outcome is Outcome.UNKNOWN
    assert len(sim.ledger(client_order_id=name)["orders"]) == 1


async def test_the_venue_refuses_a_request_that_comes_after_its_expiry(
    connect: Connect, sim: Simulator, symbol: str
) -> None:
    """The expiry counts from the claim that the permit names, not from the send."""
    sim.faults(late(before_ms=700))
    gateway = await connect(sim.url, symbols=(symbol,))
    order = OrderSpec(symbol, "buy", "market", Decimal(1))
    done = await gateway.place(order, permit_for(new_id(), expiry_ms=300))
    assert done.outcome is Outcome.NOT_PLACED
    assert "recvWindow" in done.message


async def test_silence_ends_with_the_time_out_and_is_unknown(connect: Connect) -> None:
    async with RawServer(hold) as server:
        gateway = await connect(server.url, timeout_ms=300)
        began = time.monotonic()
        done = await gateway.place(BUY, permit_for(new_id()))
        assert (done.outcome, done.evidence.sent) == (Outcome.UNKNOWN, True)
        assert 0.25 < time.monotonic() - began < 2


async def test_a_dead_venue_has_not_got_the_order(connect: Connect) -> None:
    async with RawServer(order_answer()) as server:
        gateway = await connect(server.url)
        gateway._client.urls["api"]["private"] = "http://127.0.0.1:1/api/v3"
        done = await gateway.place(BUY, permit_for(new_id()))
        assert done.outcome is Outcome.NOT_PLACED
        assert not done.evidence.sent
        assert server.creates == []


async def test_one_permit_is_one_request(connect: Connect) -> None:
    async with RawServer(order_answer()) as server:
        gateway = await connect(server.url)
        permit = permit_for(new_id())
        answers = await asyncio.gather(gateway.place(BUY, permit), gateway.place(BUY, permit))
        assert {done.outcome for done in answers} == {Outcome.ACCEPTED, Outcome.UNKNOWN}
        assert len(server.creates) == 1


async def test_a_late_permit_sends_nothing(connect: Connect) -> None:
    async with RawServer(order_answer()) as server:
        gateway = await connect(server.url)
        permit = replace(permit_for(new_id()), send_before_monotonic_s=monotonic_s() - 0.001)
        done = await gateway.place(BUY, permit)
        assert (done.outcome, done.evidence.sent) == (Outcome.NOT_PLACED, False)
        assert "too late" in done.message
        assert server.creates == []


async def test_many_at_once_keep_their_answers_apart(
    connect: Connect, sim: Simulator, symbol: str
) -> None:
    gateway = await connect(sim.url, symbols=(symbol,))
    order = OrderSpec(symbol, "buy", "limit", Decimal("0.1"), Decimal(90))
    names = [new_id() for _ in range(20)]
    answers = await asyncio.gather(*(gateway.place(order, permit_for(name)) for name in names))
    assert [done.report.client_order_id for done in answers] == names
    assert all(name in done.evidence.request for name, done in zip(names, answers, strict=True))


async def test_a_cancelled_task_is_cancelled_and_nothing_else(connect: Connect) -> None:
    async with RawServer(hold) as server:
        gateway = await connect(server.url)
        task = asyncio.create_task(gateway.place(BUY, permit_for(new_id())))
        await until(lambda: server.creates)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"quantity": Decimal("0.010001")}, "quantity: 0.010001 is no multiple of the market's"),
        ({"quantity": Decimal(0)}, "quantity: must be above zero"),
        ({"quantity": Decimal("NaN")}, "quantity: must be above zero"),
        ({"price": Decimal("20000.001")}, "price: 20000.001 is no multiple of the market's"),
        ({"price": Decimal(-1)}, "price: must be above zero"),
        ({"price": None}, "price: a limit order needs one"),
        ({"type": "market"}, "price: a market order takes none"),
        ({"type": "stop"}, "type: is market or limit"),
        ({"side": "both"}, "side: is buy or sell"),
        ({"stop_price": Decimal(1)}, "stop_price: "),
        ({"reduce_only": True}, "reduce_only: "),
        ({"time_in_force": "GTD"}, "time_in_force: "),
        ({"type": "market", "price": None, "time_in_force": "IOC"}, "time_in_force: "),
        ({"type": "market", "price": None, "post_only": True}, "post_only: "),
        ({"post_only": True, "time_in_force": "FOK"}, "post_only: "),
        ({"params": {"quoteOrderQty": "100"}}, "params.quoteOrderQty: is not passed on"),
        ({"params": {"newClientOrderId": "mine"}}, "params.newClientOrderId: "),
        ({"params": {"timestamp": 1}}, "params.timestamp: "),
        ({"params": {"sor": True}}, "params.sor: "),
        ({"params": {"test": True}}, "params.test: "),
        ({"params": {"strategyId": 1.5}}, "params.strategyId: must be text or a whole number"),
    ],
)
async def test_what_the_venue_cannot_do_is_refused_here_and_the_field_is_named(
    connect: Connect, changes: dict[str, Any], field: str
) -> None:
    async with RawServer(order_answer()) as server:
        gateway = await connect(server.url)
        done: PlaceAnswer = await gateway.place(replace(BUY, **changes), permit_for(new_id()))
        assert done.outcome is Outcome.REJECTED
        assert field in done.message
        assert not done.evidence.sent
        assert server.creates == []


async def test_an_expiry_longer_than_the_venue_takes_is_refused_here(connect: Connect) -> None:
    async with RawServer(order_answer()) as server:
        gateway = await connect(server.url)
        done = await gateway.place(BUY, permit_for(new_id(), expiry_ms=60_001))
        assert done.outcome is Outcome.REJECTED
        assert "request_expiry_ms" in done.message
        assert server.creates == []


async def test_a_symbol_that_is_not_connected_is_not_sent(connect: Connect) -> None:
    async with RawServer(order_answer()) as server:
        gateway = await connect(server.url)
        done = await gateway.place(replace(BUY, symbol="ETH/USDT"), permit_for(new_id()))
        assert (done.outcome, done.evidence.sent) == (Outcome.NOT_PLACED, False)
        assert "ETH/USDT" in done.message


@pytest.mark.parametrize(
    ("changes", "wire"),
    [
        ({}, {"type": "LIMIT", "timeInForce": "GTC"}),
        ({"time_in_force": "IOC"}, {"type": "LIMIT", "timeInForce": "IOC"}),
        ({"time_in_force": "FOK"}, {"type": "LIMIT", "timeInForce": "FOK"}),
        ({"post_only": True}, {"type": "LIMIT_MAKER", "timeInForce": None}),
        ({"post_only": True, "time_in_force": "GTC"}, {"type": "LIMIT_MAKER"}),
        ({"type": "market", "price": None}, {"type": "MARKET", "price": None}),
        ({"side": "sell"}, {"side": "SELL"}),
        ({"params": {"strategyId": 7}}, {"strategyId": "7"}),
        ({"quantity": Decimal("1E+1")}, {"quantity": "10"}),
    ],
)
async def test_what_reaches_the_venue(
    connect: Connect, changes: dict[str, Any], wire: dict[str, str | None]
) -> None:
    async with RawServer(order_answer()) as server:
        gateway = await connect(server.url)
        permit = permit_for(new_id(), expiry_ms=2500)
        done: PlaceAnswer = await gateway.place(replace(BUY, **changes), permit)
        assert done.outcome is Outcome.ACCEPTED
        [request] = server.creates
        sent = request.params
        assert {name: sent.get(name) for name in wire} == wire
        assert sent["newClientOrderId"] == permit.client_order_id
        assert sent["timestamp"] == str(permit.claimed_venue_ms)
        assert sent["recvWindow"] == "2500"
        assert sent["newOrderRespType"] == "FULL"
        assert "quoteOrderQty" not in sent


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=st.integers(1, 10**9), ticks=st.integers(1, 10**8), zeros=st.integers(0, 4))
async def test_numbers_reach_the_venue_exactly(
    connect: Connect, steps: int, ticks: int, zeros: int
) -> None:
    quantity, price = Decimal(steps) * Decimal("0.00001"), Decimal(ticks) * Decimal("0.01")
    padded = Decimal(f"{quantity:f}" + "0" * zeros)
    async with RawServer(order_answer()) as server:
        gateway = await connect(server.url)
        order = replace(BUY, quantity=padded, price=price)
        assert (await gateway.place(order, permit_for(new_id()))).outcome is Outcome.ACCEPTED
        [request] = server.creates
        assert "e" not in (request.params["quantity"] + request.params["price"]).lower()
        assert Decimal(request.params["quantity"]) == quantity
        assert Decimal(request.params["price"]) == price
        await gateway.close()


def test_a_tiny_amount_is_written_in_plain_notation() -> None:
    assert plain(Decimal("1E-7")) == "0.0000001"
    assert plain(Decimal("1E+3")) == "1000"


async def test_an_account_cannot_switch_retries_on(connect: Connect) -> None:
    async with RawServer(answer(503, {})) as server:
        gateway = await connect(server.url, options={"maxRetriesOnFailure": 3})
        await gateway.place(BUY, permit_for(new_id()))
        await gateway.look(Rung.CLIENT_ID, "BTC/USDT", client_order_id="x")
        assert [request.method for request in server.at("/api/v3/order")] == ["POST", "GET"]


@pytest.mark.parametrize(
    "turn", [hang_up, order_answer(), answer(503, f"<html>{API_KEY} signature=abcdef</html>")]
)
async def test_evidence_names_neither_key_nor_signature(connect: Connect, turn: Turn) -> None:
    async with RawServer(turn) as server:
        gateway = await connect(server.url)
        done = await gateway.place(BUY, permit_for(new_id()))
        [request] = server.creates
        text = repr(done.evidence.as_json()) + done.message
        for secret in (API_KEY, SECRET, request.params["signature"], "abcdef"):
            assert secret not in text


async def test_a_long_answer_is_kept_in_part(connect: Connect) -> None:
    async with RawServer(answer(500, "x" * 10_000)) as server:
        gateway = await connect(server.url)
        done = await gateway.place(BUY, permit_for(new_id()))
        assert len(done.evidence.body) == 4096


async def test_an_answer_of_another_execution_is_not_taken_for_ours(
    connect: Connect, sim: Simulator, symbol: str
) -> None:
    sim.faults(answered(504, "<html>gateway time-out</html>", execute=True))
    gateway = await connect(sim.url, symbols=(symbol,))
    done = await gateway.place(OrderSpec(symbol, "buy", "market", Decimal(1)), permit_for(new_id()))
    assert (done.outcome, done.evidence.status) == (Outcome.UNKNOWN, 504)


async def test_a_ban_tells_until_when_on_our_clock(
    connect: Connect, sim: Simulator, symbol: str
) -> None:
    gateway = await connect(sim.url, symbols=(symbol,))
    sim.clock(5000)
    await gateway.clock()
    limit = {"rate_limit": {"status": 418, "retry_after_s": 30}}
    sim.faults(fault(action=limit))
    order = OrderSpec(symbol, "buy", "market", Decimal(1))
    before_ms = time.time() * 1000
    done = await gateway.place(order, permit_for(new_id(), offset_ms=5000))
    assert done.outcome is Outcome.NOT_PLACED
    assert done.limited_until_desk_ms is not None
    assert before_ms + 29_000 < done.limited_until_desk_ms < before_ms + 33_000
