"""A whole desk against the simulator: how fast an order is out, and how fast the truth is known."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

import ccxt

from tests.bench import Row
from tests.stack.conftest import EXPIRY_MS, SYMBOLS, TIMEOUT_MS, Stack, wire
from tests.support import simulator as faults
from tests.support.desk import Desk
from tests.support.simulator import API_KEY, SECRET, Simulator

ORDERS = 60
LOST = 15
MARGIN_MS, LAG_MS = 500, 3000  # of the profile of binance


def rows() -> list[Row]:
    with (
        Simulator() as venue,
        Desk(
            venue.url,
            accounts={"main": SYMBOLS[:20], "polled": SYMBOLS[20:]},
            timeout_ms=TIMEOUT_MS,
            request_expiry_ms=EXPIRY_MS,
            each={"polled": {"stream": False}},
        ) as desk,
    ):
        main, polled = Stack(desk, venue, "main"), Stack(desk, venue, "polled")
        return [
            _answered(main, venue),
            _wire(main, venue),
            _found(polled),
            _pushed(main),
            _absent(polled),
        ]


def _answered(stack: Stack, venue: Simulator) -> Row:
    """From the submission to the venue's answer in the journal, one order after the other."""
    ours = [_lasted(stack, SYMBOLS[0], "accepted", "submitted") for _ in range(ORDERS)]
    exchange = venue.point(ccxt.binance({"apiKey": API_KEY, "secret": SECRET}))
    exchange.load_markets()
    return Row(
        "submitted to accepted, p50",
        statistics.median(ours),
        "ms",
        statistics.median(_timed(lambda: _raw(exchange)) for _ in range(ORDERS)),
        "raw ccxt, not journaled",
    )


def _raw(exchange: Any) -> None:
    exchange.create_order(SYMBOLS[1], "market", "buy", 1)


def _wire(stack: Stack, venue: Simulator) -> Row:
    """From the submission's commit to the request at the venue."""
    lags = []
    for _ in range(ORDERS):
        name = stack.submit(SYMBOLS[0])
        stack.wait(name, "FILLED")
        began = _at(stack, name, "submitted")
        (request,) = venue.ledger(client_order_id=name)["requests"]
        lags.append(float(request["at_ms"]) - began.timestamp() * 1000)
    return Row("submitted to wire, p50", statistics.median(lags), "ms")


def _found(stack: Stack) -> Row:
    """A lost answer, the order live, REST alone: from the time-out to ACKED."""
    ours = []
    for symbol in SYMBOLS[20 : 20 + LOST]:
        stack.venue.faults(faults.lost_answer(symbol=wire(symbol)))
        ours.append(_lasted(stack, symbol, "found", "no_answer"))
    return Row(
        "lost answer, REST alone: time-out to ACKED, p50",
        statistics.median(ours),
        "ms",
        300,
        "wanted",
    )


def _pushed(stack: Stack) -> Row:
    """A held answer with a stream: from the submission to the push that resolves it."""
    ours = []
    for symbol in SYMBOLS[:LOST]:
        early: dict[str, Any] = {"push_before_answer": {"delay_ms": 900}}
        stack.venue.faults(faults.fault("create", action=early, symbol=wire(symbol)))
        ours.append(_lasted(stack, symbol, "accepted", "claimed"))
    return Row(
        "lost answer, with the stream: claim to ACKED, p50",
        statistics.median(ours),
        "ms",
        100,
        "wanted",
    )


def _absent(stack: Stack) -> Row:
    """A request that never arrived: from the claim to the proof of absence."""
    ours = []
    for symbol in SYMBOLS[20:23]:
        stack.venue.faults(faults.dropped_before(symbol=wire(symbol)))
        ours.append(_lasted(stack, symbol, "absent", "claimed"))
    bound = EXPIRY_MS + MARGIN_MS + LAG_MS + 1000
    return Row(
        "never arrived: claim to proof of absence, p50",
        statistics.median(ours),
        "ms",
        bound,
        "bound",
    )


def _lasted(stack: Stack, symbol: str, event: str, since: str) -> float:
    name = stack.submit(symbol)
    stack.wait(name, "FILLED", within_s=30)
    return (_at(stack, name, event) - _at(stack, name, since)).total_seconds() * 1000


def _at(stack: Stack, name: str, event: str) -> datetime:
    lines = stack.intent(name)["transitions"]
    return datetime.fromisoformat(next(line["at"] for line in lines if line["event"] == event))


def _timed(call: Callable[[], None]) -> float:
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1000
