"""The venue's pushes: every execution, through lost connections, and never a dead stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from decimal import Decimal

from tests.support.simulator import Simulator, fault
from tests.venues.conftest import Connect, new_id, permit_for, until
from venues.ccxt_gateway import CcxtGateway
from venues.ccxt_gateway.stream import KEEPER
from venues.gateway import OrderReport, OrderSpec, OrderStatus


@asynccontextmanager
async def listening(gateway: CcxtGateway, sim: Simulator) -> AsyncIterator[list[OrderReport]]:
    """What the stream says, once the venue knows the subscription."""
    heard: list[OrderReport] = []

    def hear(report: OrderReport) -> None:
        heard.append(report)

    async def listen() -> None:
        stream = gateway.stream()
        assert stream is not None
        async for report in stream:
            hear(report)

    task = asyncio.create_task(listen())
    await until(lambda: subscribers(sim) == 1)
    yield heard
    await gateway.close()
    await asyncio.wait_for(task, 5)


def subscribers(sim: Simulator) -> int:
    return int(sim.ledger()["stream"]["subscribers"])


def of(heard: list[OrderReport], name: str) -> list[OrderReport]:
    return [report for report in heard if report.client_order_id == name]


async def rest(gateway: CcxtGateway, symbol: str, quantity: str = "3") -> str:
    name = new_id()
    order = OrderSpec(symbol, "buy", "limit", Decimal(quantity), Decimal(90))
    await gateway.place(order, permit_for(name))
    return name


def has(heard: list[OrderReport], name: str, status: OrderStatus) -> Callable[[], bool]:
    return lambda: any(report.status is status for report in of(heard, name))


async def test_each_execution_comes_as_a_trade_even_when_they_come_together(
    connect: Connect, sim: Simulator, symbol: str
) -> None:
    gateway = await connect(sim.url, symbols=(symbol,))
    async with listening(gateway, sim) as heard:
        name = await rest(gateway, symbol)
        for _ in range(3):  # the loop reads none of them in between
            sim.fill(symbol.replace("/", ""), client_order_id=name, quantity="1")
        await until(has(heard, name, OrderStatus.FILLED))
        reports = of(heard, name)
        assert [report.filled for report in reports] == [0, 1, 2, 3]
        trades = [trade for report in reports for trade in report.trades]
        assert len({trade.venue_trade_id for trade in trades}) == 3
        for trade in trades:
            assert (trade.quantity, trade.price) == (Decimal(1), Decimal(90))
            assert trade.symbol == symbol
            assert trade.venue_order_id == reports[0].venue_order_id
            assert trade.fee > 0
            assert trade.fee_currency == symbol.partition("/")[0]


async def test_a_cancel_is_pushed_under_our_id(
    connect: Connect, sim: Simulator, symbol: str
) -> None:
    gateway = await connect(sim.url, symbols=(symbol,))
    async with listening(gateway, sim) as heard:
        name = await rest(gateway, symbol)
        await gateway.cancel(symbol, name, None)
        await until(has(heard, name, OrderStatus.CANCELED))
        assert of(heard, name)[-1].reason == "CANCELED"


async def test_an_expiry_at_the_venue_is_told_as_the_reason(
    connect: Connect, sim: Simulator, symbol: str
) -> None:
    gateway = await connect(sim.url, symbols=(symbol,))
    async with listening(gateway, sim) as heard:
        name = new_id()
        order = OrderSpec(symbol, "buy", "limit", Decimal(1), Decimal(90), time_in_force="IOC")
        await gateway.place(order, permit_for(name))
        await until(has(heard, name, OrderStatus.CANCELED))
        assert of(heard, name)[-1].reason == "EXPIRED"


async def test_a_dropped_stream_comes_back_by_itself(
    connect: Connect, sim: Simulator, symbol: str
) -> None:
    gateway = await connect(sim.url, symbols=(symbol,))
    async with listening(gateway, sim) as heard:
        for _ in range(2):
            sim.faults({"action": {"stream_drop": True}})
            await until(lambda: subscribers(sim) == 0)
            await until(lambda: subscribers(sim) == 1)
            name = await rest(gateway, symbol)
            await until(has(heard, name, OrderStatus.OPEN))


def connection(gateway: CcxtGateway) -> object:
    """ccxt's socket, None while there is none."""
    return next(iter(gateway._client.clients.values()), None)


def renewed(gateway: CcxtGateway, old: object) -> Callable[[], bool]:
    return lambda: connection(gateway) not in (None, old)


async def test_an_answer_that_ccxt_chokes_on_breaks_the_connection_and_not_the_stream(
    connect: Connect, sim: Simulator, symbol: str
) -> None:
    """ccxt would go on with a living connection that nobody reads any more."""
    gateway = await connect(sim.url, symbols=(symbol,))
    async with listening(gateway, sim) as heard:
        for nonsense in (["nonsense", 1], 5):
            before = connection(gateway)
            gateway._client.handle_message(before, nonsense)
            await until(renewed(gateway, before))
            await until(lambda: subscribers(sim) == 1)
        name = await rest(gateway, symbol)
        await until(has(heard, name, OrderStatus.OPEN))


async def test_other_events_and_unreadable_ones_change_nothing(
    connect: Connect, sim: Simulator, symbol: str
) -> None:
    gateway = await connect(sim.url, symbols=(symbol,))
    async with listening(gateway, sim) as heard:
        before = connection(gateway)
        for event in (
            {"e": "outboundAccountPosition", "B": 5},
            {"e": "somethingNew"},
            {"e": "executionReport", "i": 1},
        ):
            gateway._client.handle_message(before, {"subscriptionId": 0, "event": event})
        name = await rest(gateway, symbol)
        await until(has(heard, name, OrderStatus.OPEN))
        assert connection(gateway) is before


async def test_the_end_of_the_stream_on_a_living_connection_is_noticed(
    connect: Connect, sim: Simulator, symbol: str
) -> None:
    """ccxt takes note and waits for ever."""
    gateway = await connect(sim.url, symbols=(symbol,))
    async with listening(gateway, sim) as heard:
        before = connection(gateway)
        gateway._client.handle_message(before, {"event": {"e": "eventStreamTerminated", "E": 1}})
        await until(renewed(gateway, before))
        await until(lambda: subscribers(sim) == 1)
        name = await rest(gateway, symbol)
        await until(has(heard, name, OrderStatus.OPEN))


async def test_a_venue_that_is_down_is_asked_again_until_it_is_back(
    connect: Connect, sim: Simulator, symbol: str
) -> None:
    gateway = await connect(sim.url, symbols=(symbol,))
    good = gateway._client.urls["api"]["ws"]["ws-api"]["spot"]
    gateway._client.urls["api"]["ws"]["ws-api"]["spot"] = "ws://127.0.0.1:1/ws-api/v3"
    task = asyncio.create_task(anext(aiter(gateway.stream())))
    await asyncio.wait([task], timeout=0.3)
    assert not task.done()
    gateway._client.urls["api"]["ws"]["ws-api"]["spot"] = good
    await until(lambda: subscribers(sim) == 1)
    name = await rest(gateway, symbol)
    assert (await asyncio.wait_for(task, 5)).client_order_id == name


async def test_closing_the_gateway_ends_the_stream_at_once(
    connect: Connect, sim: Simulator, symbol: str
) -> None:
    gateway = await connect(sim.url, symbols=(symbol,))
    async with listening(gateway, sim):
        before = asyncio.get_running_loop().time()
        await gateway.close()
        assert asyncio.get_running_loop().time() - before < 0.5
    await until(lambda: subscribers(sim) == 0)


async def test_cancelling_the_reader_leaves_no_task_behind(
    connect: Connect, sim: Simulator, symbol: str
) -> None:
    gateway = await connect(sim.url, symbols=(symbol,))

    async def listen() -> None:
        stream = gateway.stream()
        assert stream is not None
        async for _ in stream:
            pass

    task = asyncio.create_task(listen())
    await until(lambda: subscribers(sim) == 1)
    assert KEEPER in {each.get_name() for each in asyncio.all_tasks()}
    task.cancel()
    await asyncio.wait([task])
    assert KEEPER not in {each.get_name() for each in asyncio.all_tasks()}


async def test_a_push_may_come_before_the_answer(
    connect: Connect, sim: Simulator, symbol: str
) -> None:
    gateway = await connect(sim.url, symbols=(symbol,))
    async with listening(gateway, sim) as heard:
        sim.faults(fault(action={"push_before_answer": {"delay_ms": 1500}}))
        sending = asyncio.create_task(rest(gateway, symbol))
        await until(lambda: heard)
        assert not sending.done()
        name = await sending
        assert of(heard, name)
