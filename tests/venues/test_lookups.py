"""Looking orders up, cancelling them, clocks and rules, against the simulator."""

from __future__ import annotations

import logging
import time
from decimal import Decimal
from typing import Any

import pytest

from tests.support.simulator import (
    API_KEY,
    SECRET,
    Simulator,
    fault,
    hidden,
    refused,
)
from tests.venues.conftest import Connect, new_id, permit_for
from tests.venues.rawserver import RawServer, Turn, answer, half, hang_up
from venues.ccxt_gateway import CcxtGateway, gateway_for
from venues.gateway import (
    ConnectError,
    Look,
    OrderSpec,
    OrderStatus,
    Outcome,
    SecretText,
    VenueSettings,
)
from venues.profiles import Rung

DAY_MS = 86_400_000
ROW = {
    "symbol": "BTCUSDT",
    "orderId": 1,
    "clientOrderId": "x",
    "origQty": "1",
    "executedQty": "0",
    "status": "NEW",
    "side": "BUY",
}


async def rest(gateway: CcxtGateway, symbol: str) -> tuple[str, str]:
    """A resting order: our ID and the venue's."""
    name = new_id()
    order = OrderSpec(symbol, "buy", "limit", Decimal(1), Decimal(90))
    done = await gateway.place(order, permit_for(name))
    assert done.report is not None
    return name, done.report.venue_order_id


async def test_every_rung_shows_an_order_where_it_is(
    connect: Connect, sim: Simulator, symbol: str
) -> None:
    gateway = await connect(sim.url, symbols=(symbol,))
    name, number = await rest(gateway, symbol)
    since = int(time.time() * 1000) - 60_000
    seen = {
        Rung.CLIENT_ID: await gateway.look(Rung.CLIENT_ID, symbol, client_order_id=name),
        Rung.VENUE_ID: await gateway.look(Rung.VENUE_ID, symbol, venue_order_id=number),
        Rung.OPEN_ORDERS: await gateway.look(Rung.OPEN_ORDERS, symbol),
        Rung.CLOSED_ORDERS: await gateway.look(Rung.CLOSED_ORDERS, symbol, since_venue_ms=since),
    }
    for rung, look in seen.items():
        assert (look.rung, look.answered, look.complete) == (rung, True, True)
        [report] = look.reports
        assert (report.client_order_id, report.venue_order_id) == (name, number)
        assert (report.symbol, report.side, report.status) == (symbol, "buy", OrderStatus.OPEN)
    assert (await gateway.look(Rung.TRADES, symbol)).trades == ()
    sim.fill(symbol.replace("/", ""), client_order_id=name)
    assert (await gateway.look(Rung.OPEN_ORDERS, symbol)).reports == ()
    [report] = (await gateway.look(Rung.CLIENT_ID, symbol, client_order_id=name)).reports
    assert (report.status, report.filled) == (OrderStatus.FILLED, Decimal(1))
    for look in (
        await gateway.look(Rung.TRADES, symbol, since_venue_ms=since),
        await gateway.look(Rung.TRADES, symbol, venue_order_id=number),
    ):
        [trade] = look.trades
        assert (trade.venue_order_id, trade.quantity, trade.side) == (number, Decimal(1), "buy")


async def test_executions_of_one_order_are_its_own_only(
    connect: Connect, sim: Simulator, symbol: str
) -> None:
    gateway = await connect(sim.url, symbols=(symbol,))
    orders = [OrderSpec(symbol, "buy", "market", Decimal(n)) for n in (1, 2)]
    _, second = [await gateway.place(order, permit_for(new_id())) for order in orders]
    number = second.report.venue_order_id
    look = await gateway.look(Rung.TRADES, symbol, venue_order_id=number)
    assert {trade.venue_order_id for trade in look.trades} == {number}
    assert sum(trade.quantity for trade in look.trades) == Decimal(2)


async def test_no_such_order_is_an_answer_without_reports(
    connect: Connect, sim: Simulator, symbol: str
) -> None:
    gateway = await connect(sim.url, symbols=(symbol,))
    for look in (
        await gateway.look(Rung.CLIENT_ID, symbol, client_order_id="never-sent"),
        await gateway.look(Rung.VENUE_ID, symbol, venue_order_id="1"),
    ):
        assert (look.answered, look.reports) == (True, ())


@pytest.mark.parametrize(
    "turn",
    [
        answer(500, {"code": -2013, "msg": "Order does not exist."}),
        answer(503, ""),
        answer(400, {"code": -1121, "msg": "Invalid symbol."}),
        answer(400, "not JSON"),
        answer(404, {"code": -1000, "msg": "no such path"}),
        answer(200, "<html></html>"),
        answer(200, ""),
        answer(200, {}),
        answer(200, []),
        answer(200, {"orderId": 1}),
        answer(500, ROW),
        answer(202, ROW),
        answer(307, "", "Location: /elsewhere"),
        answer(429, {"code": -1003, "msg": "Too much request weight used"}),
        half(answer(400, {"code": -2013, "msg": "Order does not exist."})),
        hang_up,
    ],
)
async def test_a_failed_look_up_is_no_answer(connect: Connect, turn: Turn) -> None:
    async with RawServer(turn) as server:
        gateway = await connect(server.url)
        look: Look = await gateway.look(Rung.CLIENT_ID, "BTC/USDT", client_order_id="x")
        assert not look.answered
        assert look.reports == ()
        assert len(server.at("/api/v3/order")) == 1


@pytest.mark.parametrize(
    "turn",
    [answer(200, {}), answer(200, ""), answer(200, [{"orderId": 1}]), answer(500, [])],
)
@pytest.mark.parametrize("rung", [Rung.OPEN_ORDERS, Rung.CLOSED_ORDERS, Rung.TRADES])
async def test_a_strange_list_is_no_answer(connect: Connect, rung: Rung, turn: Turn) -> None:
    path = {Rung.OPEN_ORDERS: "openOrders", Rung.CLOSED_ORDERS: "allOrders"}.get(rung, "myTrades")
    async with RawServer(turn, path=f"/api/v3/{path}") as server:
        gateway = await connect(server.url)
        assert not (await gateway.look(rung, "BTC/USDT")).answered


async def test_somebody_elses_order_is_shown_as_it_came(
    connect: Connect, sim: Simulator, symbol: str
) -> None:
    """Matching is the caller's; the client order ID is the venue's word, not what was asked."""
    gateway = await connect(sim.url, symbols=(symbol,))
    other, _ = await rest(gateway, symbol)
    name, _ = await rest(gateway, symbol)
    sim.faults(fault("query", action={"ignore_id": True}))
    [report] = (await gateway.look(Rung.CLIENT_ID, symbol, client_order_id=name)).reports
    assert report.client_order_id == other


async def test_a_list_that_cannot_reach_back_says_so(
    connect: Connect, sim: Simulator, symbol: str
) -> None:
    gateway = await connect(sim.url, symbols=(symbol,))
    now = int(time.time() * 1000)
    for rung in (Rung.CLOSED_ORDERS, Rung.TRADES):
        old = await gateway.look(rung, symbol, since_venue_ms=now - DAY_MS - 1000)
        new = await gateway.look(rung, symbol, since_venue_ms=now - DAY_MS + 60_000)
        assert (old.answered, old.complete, new.complete) == (True, False, True)


async def test_a_full_page_is_not_complete(connect: Connect) -> None:
    for size, complete in ((999, True), (1000, False)):
        page = answer(200, [{**ROW, "orderId": n + 1} for n in range(size)])
        async with RawServer(page, path="/api/v3/allOrders") as server:
            gateway = await connect(server.url)
            look = await gateway.look(Rung.CLOSED_ORDERS, "BTC/USDT")
            assert (len(look.reports), look.complete) == (size, complete)
            assert server.at("/api/v3/allOrders")[0].params["limit"] == "1000"


@pytest.mark.parametrize("empty", ["", " "])
async def test_an_empty_id_is_never_asked_for(connect: Connect, empty: str) -> None:
    async with RawServer(answer(200, {})) as server:
        gateway = await connect(server.url)
        with pytest.raises(ValueError, match="client order ID"):
            await gateway.look(Rung.CLIENT_ID, "BTC/USDT", client_order_id=empty)
        with pytest.raises(ValueError, match="venue order ID"):
            await gateway.look(Rung.VENUE_ID, "BTC/USDT", venue_order_id=empty)
        with pytest.raises(ValueError, match="empty"):
            await gateway.cancel("BTC/USDT", empty, empty)
        with pytest.raises(ValueError, match="empty"):
            await gateway.cancel("BTC/USDT", empty, None)
        assert server.at("/api/v3/order") == []


@pytest.mark.parametrize("by_venue_id", [True, False])
async def test_a_cancel_is_done_and_reported_under_our_id(
    connect: Connect, sim: Simulator, symbol: str, by_venue_id: bool
) -> None:
    gateway = await connect(sim.url, symbols=(symbol,))
    name, number = await rest(gateway, symbol)
    done = await gateway.cancel(symbol, name, number if by_venue_id else None)
    assert done.done
    assert done.report is not None
    assert (done.report.client_order_id, done.report.venue_order_id) == (name, number)
    assert (done.report.status, done.report.reason) == (OrderStatus.CANCELED, "CANCELED")
    again = await gateway.cancel(symbol, name, None)
    assert (again.done, again.message) == (False, "Unknown order sent.")


@pytest.mark.parametrize("turn", [hang_up, answer(503, ""), answer(200, {}), answer(200, "")])
async def test_a_cancel_without_a_clear_answer_is_not_done(connect: Connect, turn: Turn) -> None:
    async with RawServer(turn) as server:
        gateway = await connect(server.url)
        done = await gateway.cancel("BTC/USDT", "x", None)
        assert not done.done
        assert done.report is None
        assert [request.method for request in server.at("/api/v3/order")] == ["DELETE"]


async def test_look_ups_follow_the_venues_clock(
    connect: Connect, sim: Simulator, symbol: str
) -> None:
    gateway = await connect(sim.url, symbols=(symbol,))
    sim.clock(-30_000)
    wrong = await gateway.look(Rung.OPEN_ORDERS, symbol)
    assert not wrong.answered
    reading = await gateway.clock()
    assert reading is not None
    assert abs(reading.offset_ms + 30_000) <= reading.uncertainty_ms + 2
    assert 0 < reading.uncertainty_ms < 1000
    assert (await gateway.look(Rung.OPEN_ORDERS, symbol)).answered


async def test_a_clock_that_does_not_answer_is_none(connect: Connect, sim: Simulator) -> None:
    gateway = await connect(sim.url)
    sim.faults(refused(-1000, "no", 500, path="time"))
    assert await gateway.clock() is None


async def test_a_rate_limit_tells_until_when(connect: Connect, sim: Simulator, symbol: str) -> None:
    gateway = await connect(sim.url, symbols=(symbol,))
    sim.faults(fault("open_orders", action={"rate_limit": {"status": 429, "retry_after_s": 7}}))
    before_ms = time.time() * 1000
    look = await gateway.look(Rung.OPEN_ORDERS, symbol)
    assert not look.answered
    assert look.limited_until_desk_ms is not None
    assert before_ms + 6000 < look.limited_until_desk_ms < before_ms + 10_000


async def test_connecting_asks_for_the_rules_alone(connect: Connect) -> None:
    async with RawServer() as server:
        gateway = await connect(server.url)
        assert [request.target for request in server.requests] == ["/api/v3/exchangeInfo"]
        [market] = await gateway.connect()
        assert (market.symbol, market.base, market.quote) == ("BTC/USDT", "BTC", "USDT")
        assert market.quantity_step == Decimal("0.00001")
        assert market.price_tick == Decimal("0.01")
        assert market.min_quantity == Decimal("0.00001")
        assert market.max_quantity == Decimal(9000)
        assert market.min_notional == Decimal(5)


async def test_an_unknown_symbol_is_named(connect: Connect, sim: Simulator) -> None:
    with pytest.raises(ConnectError, match="XYZ/USDT"):
        await connect(sim.url, symbols=("BTC/USDT", "XYZ/USDT"))


async def test_a_venue_that_is_not_there_is_told_with_the_call_that_failed(
    connect: Connect,
) -> None:
    with pytest.raises(ConnectError, match=r"^binance: GET /api/v3/exchangeInfo: \w+ from Client"):
        await connect("http://127.0.0.1:1")


def settings(**changes: Any) -> VenueSettings:
    given: dict[str, Any] = {"symbols": ("BTC/USDT",), **changes}
    return VenueSettings(
        "main", "binance", api_key=SecretText("k"), secret=SecretText("s"), **given
    )


async def test_every_address_moves_to_the_base_url_and_paths_stay() -> None:
    for base_url, web, socket in (
        ("https://proxy.example:8443", "https://", "wss://"),
        ("http://127.0.0.1:9100", "http://", "ws://"),
    ):
        gateway = gateway_for(settings(base_url=base_url))
        assert isinstance(gateway, CcxtGateway)
        host = base_url.partition("://")[2]
        urls = gateway._client.urls["api"]
        for url in _texts(urls):
            assert url.startswith((f"{web}{host}", f"{socket}{host}")), url
        assert urls["private"] == f"{base_url}/api/v3"
        assert urls["ws"]["ws-api"]["spot"] == f"{socket}{host}/ws-api/v3"
        await gateway.close()


async def test_the_sandbox_is_the_venues_test_network() -> None:
    gateway = gateway_for(settings(sandbox=True))
    assert isinstance(gateway, CcxtGateway)
    assert "testnet" in gateway._client.urls["api"]["private"]
    await gateway.close()


def _texts(urls: Any) -> list[str]:
    if isinstance(urls, dict):
        return [text for value in urls.values() for text in _texts(value)]
    return [urls]


async def test_closing_twice_is_fine_and_a_closed_gateway_may_be_connected_anew(
    connect: Connect, sim: Simulator
) -> None:
    gateway = await connect(sim.url)
    await gateway.close()
    await gateway.close()
    assert len(await gateway.connect()) == 1


async def test_a_closed_gateway_sends_nothing_and_opens_nothing(
    connect: Connect, sim: Simulator, symbol: str
) -> None:
    gateway = await connect(sim.url, symbols=(symbol,))
    await gateway.close()
    name = new_id()
    order = OrderSpec(symbol, "buy", "limit", Decimal(1), Decimal(90))
    done = await gateway.place(order, permit_for(name))
    assert (done.outcome, done.evidence.sent) == (Outcome.NOT_PLACED, False)
    assert "closed" in done.message
    assert not (await gateway.look(Rung.OPEN_ORDERS, symbol)).answered
    assert not (await gateway.cancel(symbol, name, None)).done
    assert await gateway.clock() is None
    assert sim.ledger(client_order_id=name)["requests"] == []


async def test_connecting_may_fail_and_then_succeed(connect: Connect, sim: Simulator) -> None:
    gateway = await connect(sim.url)
    sim.faults(refused(-1000, "not now", 503, path="exchangeInfo"))
    with pytest.raises(ConnectError, match="not now"):
        await gateway.connect()
    assert len(await gateway.connect()) == 1


async def test_an_account_may_do_without_pushes(connect: Connect, sim: Simulator) -> None:
    gateway = await connect(sim.url, stream=False)
    assert gateway.stream() is None


async def test_no_log_shows_a_key_or_a_signature(
    connect: Connect, sim: Simulator, symbol: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    gateway = await connect(sim.url, symbols=(symbol,))
    await rest(gateway, symbol)
    for secret in (API_KEY, SECRET, "signature"):
        assert secret not in caplog.text


async def test_a_hidden_order_is_not_there_for_the_look_up(
    connect: Connect, sim: Simulator, symbol: str
) -> None:
    gateway = await connect(sim.url, symbols=(symbol,))
    sim.faults(hidden("query"))
    name, _ = await rest(gateway, symbol)
    look = await gateway.look(Rung.CLIENT_ID, symbol, client_order_id=name)
    assert (look.answered, look.reports) == (True, ())
    assert SECRET not in repr(look.evidence)
    assert API_KEY not in repr(look.evidence)
