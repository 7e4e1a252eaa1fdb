"""Unmodified ccxt, in its three flavours, takes the simulator for binance."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import ccxt
import ccxt.async_support
import ccxt.pro
import pytest
import pytest_asyncio

from tests.support.simulator import Simulator, fault

pytestmark = pytest.mark.asyncio

SYMBOL, MARKET = "BTC/USDT", "BTCUSDT"
BOUND_S = 10.0


@pytest_asyncio.fixture
async def stream(sim: Simulator) -> AsyncIterator[Any]:
    exchange = sim.point(ccxt.pro.binance())
    exchange.newUpdates = True
    await exchange.load_markets()
    yield exchange
    await exchange.close()


async def test_sync_ccxt_makes_a_round_trip(sim: Simulator) -> None:
    exchange = sim.point(ccxt.binance())
    markets = exchange.load_markets()
    assert {SYMBOL, "ETH/USDT", "T40/USDT"} <= markets.keys()
    assert markets[SYMBOL]["precision"] == {
        "amount": 0.00001, "price": 0.01, "base": 1e-8, "quote": 1e-8,
    }  # fmt: skip
    bought = exchange.create_order(
        SYMBOL, "market", "buy", 0.01, None, {"newClientOrderId": "sync1"}
    )
    assert (bought["status"], bought["clientOrderId"], bought["filled"]) == (
        "closed",
        "sync1",
        0.01,
    )
    assert [trade["amount"] for trade in bought["trades"]] == [0.01]
    resting = exchange.create_order(SYMBOL, "limit", "sell", 0.01, 70000)
    assert [order["id"] for order in exchange.fetch_open_orders(SYMBOL)] == [resting["id"]]
    assert exchange.fetch_order(resting["id"], SYMBOL)["status"] == "open"
    by_client = exchange.fetch_order("", SYMBOL, {"origClientOrderId": "sync1"})
    assert by_client["id"] == bought["id"]
    assert exchange.fetch_balance()["BTC"]["used"] == 0.01
    canceled = exchange.cancel_order(resting["id"], SYMBOL)
    assert canceled["status"] == "canceled"
    assert exchange.fetch_balance()["BTC"]["used"] == 0
    [trade] = exchange.fetch_my_trades(SYMBOL)
    assert (trade["order"], trade["side"], trade["price"]) == (bought["id"], "buy", 60000)
    assert [o["id"] for o in exchange.fetch_orders(SYMBOL)] == [bought["id"], resting["id"]]
    assert exchange.fetch_ticker(SYMBOL)["last"] == 60000
    assert exchange.fetch_bids_asks([SYMBOL])[SYMBOL]["bid"] == 60000
    assert exchange.fetch_order_book(SYMBOL)["asks"][0] == [60000, 0.4]
    assert exchange.fetch_time() > 0
    with pytest.raises(ccxt.OrderNotFound):
        exchange.fetch_order("", SYMBOL, {"origClientOrderId": "nobody"})
    with pytest.raises(ccxt.InsufficientFunds):
        exchange.create_order(SYMBOL, "market", "buy", 5000)


async def test_async_ccxt_makes_a_round_trip(sim: Simulator) -> None:
    exchange = sim.point(ccxt.async_support.binance())
    try:
        await exchange.load_markets()
        orders = await asyncio.gather(
            *(
                exchange.create_order(
                    SYMBOL, "limit", "buy", 0.001, 50000, {"newClientOrderId": f"async{n}"}
                )
                for n in range(5)
            )
        )
        assert {order["status"] for order in orders} == {"open"}
        assert len(await exchange.fetch_open_orders(SYMBOL)) == 5
        sim.price(MARKET, "49999")
        assert await exchange.fetch_open_orders(SYMBOL) == []
        closed = await exchange.fetch_closed_orders(SYMBOL)
        assert {order["clientOrderId"] for order in closed} == {f"async{n}" for n in range(5)}
        assert len(await exchange.fetch_my_trades(SYMBOL)) == 5
        balance = await exchange.fetch_balance()
        assert balance["USDT"]["total"] == 100_000_000 - 250
        with pytest.raises(ccxt.OrderNotFound):
            await exchange.cancel_order("", SYMBOL, {"origClientOrderId": "async0"})
    finally:
        await exchange.close()


async def test_ccxt_pro_watches_an_order_to_its_end(sim: Simulator, stream: Any) -> None:
    watching = asyncio.ensure_future(stream.watch_orders(SYMBOL))
    await _subscribed(sim)
    await stream.create_order(SYMBOL, "limit", "buy", 0.01, 50000, {"newClientOrderId": "w1"})
    [order] = await asyncio.wait_for(watching, BOUND_S)
    assert (order["clientOrderId"], order["status"]) == ("w1", "open")
    for quantity, status, filled in (("0.004", "open", 0.004), (None, "closed", 0.01)):
        watching = asyncio.ensure_future(stream.watch_orders(SYMBOL))
        await asyncio.sleep(0)  # let it begin to wait
        sim.fill(MARKET, client_order_id="w1", quantity=quantity)
        [order] = await asyncio.wait_for(watching, BOUND_S)
        assert (order["clientOrderId"], order["status"], order["filled"]) == ("w1", status, filled)


async def test_ccxt_pro_knows_a_cancelled_order_by_its_own_id(sim: Simulator, stream: Any) -> None:
    await stream.create_order(SYMBOL, "limit", "buy", 0.01, 50000, {"newClientOrderId": "w2"})
    watching = asyncio.ensure_future(stream.watch_orders(SYMBOL))
    await _subscribed(sim)
    await stream.cancel_order("", SYMBOL, {"origClientOrderId": "w2"})
    [order] = await asyncio.wait_for(watching, BOUND_S)
    assert (order["clientOrderId"], order["status"]) == ("w2", "canceled")


async def test_ccxt_pro_is_told_of_trades(sim: Simulator, stream: Any) -> None:
    watching = asyncio.ensure_future(stream.watch_my_trades(SYMBOL))
    await _subscribed(sim)
    order = await stream.create_order(SYMBOL, "market", "sell", 0.01)
    [trade] = await asyncio.wait_for(watching, BOUND_S)
    ledger = sim.ledger(symbol=MARKET)["executions"]
    assert (trade["order"], trade["id"]) == (order["id"], str(ledger[0]["trade_id"]))
    assert (trade["amount"], trade["fee"]["currency"]) == (0.01, "USDT")


async def test_ccxt_pro_notices_a_dropped_stream_and_joins_again(
    sim: Simulator, stream: Any
) -> None:
    watching = asyncio.ensure_future(stream.watch_orders())
    await _subscribed(sim)
    sim.faults(fault(None, action={"stream_drop": True}))
    with pytest.raises(ccxt.NetworkError):
        await asyncio.wait_for(watching, BOUND_S)
    watching = asyncio.ensure_future(stream.watch_orders())
    await _subscribed(sim)
    await stream.create_order(SYMBOL, "limit", "buy", 0.01, 50000, {"newClientOrderId": "r1"})
    [order] = await asyncio.wait_for(watching, BOUND_S)
    assert order["clientOrderId"] == "r1"


async def _subscribed(sim: Simulator) -> None:
    async with asyncio.timeout(BOUND_S):
        while not (await asyncio.to_thread(sim.ledger))["stream"]["subscribers"]:
            pass
