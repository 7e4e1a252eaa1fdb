"""Every kind of fault does what it says; the ledger is asked what really happened."""

from __future__ import annotations

import http.client
import socket
import time
from typing import Any

import pytest
import requests

from tests.simulator.wire import Wire, outcomes, placed, wait_until
from tests.support.simulator import (
    Simulator,
    answered,
    dropped_before,
    fault,
    hidden,
    late,
    lost_answer,
    refused,
    silent_answer,
    unreachable,
)


def test_a_lost_answer_hides_an_executed_order(sim: Simulator, wire: Wire, symbol: str) -> None:
    sim.faults(lost_answer(symbol=symbol))
    with pytest.raises(requests.ConnectionError):
        wire.create(symbol, "f1")
    assert (outcomes(sim, "f1"), placed(sim, "f1")) == (["executed"], 1)
    assert wire.create(symbol, "f2").status == 200  # the fault was for one request


def test_a_request_dropped_before_the_venue_places_nothing(
    sim: Simulator, wire: Wire, symbol: str
) -> None:
    sim.faults(dropped_before(symbol=symbol))
    with pytest.raises(requests.ConnectionError):
        wire.create(symbol, "f1")
    assert (outcomes(sim, "f1"), placed(sim, "f1")) == (["dropped"], 0)


def test_a_dropped_connection_may_be_reset(sim: Simulator, symbol: str, wire: Wire) -> None:
    sim.faults(fault(action={"drop_before": {"reset": True}}))
    with pytest.raises(requests.ConnectionError, match="reset by peer"):
        wire.create(symbol)


@pytest.mark.parametrize(("kind", "orders"), [("drop_before", 0), ("drop_after", 1)])
def test_a_held_request_is_never_answered_and_the_connection_stays(
    sim: Simulator, wire: Wire, symbol: str, kind: str, orders: int
) -> None:
    sim.faults(fault(action={kind: {"hold": True}}))
    with pytest.raises(requests.ReadTimeout):
        wire.create(symbol, "f1", timeout_s=0.4)
    assert placed(sim, "f1") == orders


def test_a_silent_answer_leaves_an_executed_order(sim: Simulator, wire: Wire, symbol: str) -> None:
    sim.faults(silent_answer(symbol=symbol))
    with pytest.raises(requests.ReadTimeout):
        wire.create(symbol, "f1", timeout_s=0.4)
    assert placed(sim, "f1") == 1


def test_a_request_delayed_past_its_window_is_refused_when_it_is_executed(
    sim: Simulator, wire: Wire, symbol: str
) -> None:
    sim.faults(late(before_ms=300, symbol=symbol))
    answer = wire.create(symbol, "f1", recvWindow=100)
    assert (answer.code, placed(sim, "f1")) == (-1021, 0)
    sim.faults(late(before_ms=300, symbol=symbol))
    assert wire.create(symbol, "f2", recvWindow=3000).status == 200


def test_a_delayed_request_is_executed_although_its_client_has_gone(
    sim: Simulator, wire: Wire, symbol: str
) -> None:
    sim.faults(late(before_ms=600, symbol=symbol))
    with pytest.raises(requests.ReadTimeout):
        wire.create(symbol, "f1", timeout_s=0.2)
    assert (outcomes(sim, "f1"), placed(sim, "f1")) == (["pending"], 0)
    wait_until(lambda: placed(sim, "f1"), "the execution")


def test_a_reset_forgets_what_was_still_delayed(sim: Simulator, wire: Wire, symbol: str) -> None:
    sim.faults(late(before_ms=400, symbol=symbol))
    with pytest.raises(requests.ReadTimeout):
        wire.create(symbol, "f1", timeout_s=0.1)
    sim.reset()
    end = time.monotonic() + 0.6
    wait_until(lambda: time.monotonic() > end, "the delay's end")
    assert placed(sim, "f1") == 0


def test_a_delay_after_execution_shows_the_order_before_the_answer(
    sim: Simulator, wire: Wire, symbol: str
) -> None:
    sim.faults(late(after_ms=5000, symbol=symbol))
    with pytest.raises(requests.ReadTimeout):
        wire.create(symbol, "f1", timeout_s=0.2)
    assert (placed(sim, "f1"), sim.ledger("f1")["requests"][0]["answered"]) == (1, False)


@pytest.mark.parametrize(("execute", "orders"), [(True, 1), (False, 0)])
def test_another_answer_takes_the_place_of_the_venues(
    sim: Simulator, wire: Wire, symbol: str, execute: bool, orders: int
) -> None:
    sim.faults(answered(504, "<html>Gateway</html>", execute=execute, symbol=symbol))
    answer = wire.create(symbol, "f1")
    assert (answer.status, answer.text) == (504, "<html>Gateway</html>")
    assert placed(sim, "f1") == orders
    assert outcomes(sim, "f1") == ["executed" if execute else "answered"]


def test_a_coin_decides_and_the_same_seed_decides_the_same(
    sim: Simulator, wire: Wire, symbol: str
) -> None:
    def toss() -> list[int]:
        sim.faults(answered(504, coin=True, symbol=symbol, times=None))
        for n in range(12):
            wire.create(symbol, f"f{n}")
        return [placed(sim, f"f{n}") for n in range(12)]

    first = toss()
    sim.reset()
    assert toss() == first
    assert 0 < sum(first) < 12


def test_a_json_body_and_headers_can_be_given(sim: Simulator, wire: Wire, symbol: str) -> None:
    rule = {"status": 408, "body": {"code": -1007, "msg": "Timeout"}, "headers": {"X-Why": "test"}}
    sim.faults(fault(action={"respond": rule}))
    answer = wire.create(symbol)
    assert (answer.status, answer.code, answer.headers["X-Why"]) == (408, -1007, "test")


@pytest.mark.parametrize("chunked", [False, True])
def test_an_answer_is_cut_in_the_middle_of_its_body(
    sim: Simulator, wire: Wire, symbol: str, chunked: bool
) -> None:
    sim.faults(fault(action={"cut_body": {"keep_bytes": 20, "chunked": chunked}}))
    with pytest.raises(requests.exceptions.ChunkedEncodingError):
        wire.create(symbol, "f1")
    assert placed(sim, "f1") == 1


def test_a_cut_answer_promises_its_whole_length(sim: Simulator, wire: Wire) -> None:
    sim.faults(fault("time", action={"cut_body": {"keep_bytes": 3}}))
    connection = http.client.HTTPConnection("127.0.0.1", sim.port, timeout=5)
    connection.request("GET", "/api/v3/time")
    answer = connection.getresponse()
    with pytest.raises(http.client.IncompleteRead) as cut:
        answer.read()
    assert cut.value.partial == b'{"s'
    assert answer.getheader("Content-Length") == "28"
    connection.close()


def test_a_refusal_is_in_the_venues_form(sim: Simulator, wire: Wire, symbol: str) -> None:
    sim.faults(refused(-2010, "Duplicate order sent.", symbol=symbol))
    answer = wire.create(symbol, "f1")
    assert (answer.status, answer.json) == (400, {"code": -2010, "msg": "Duplicate order sent."})
    assert (outcomes(sim, "f1"), placed(sim, "f1")) == (["refused"], 0)


@pytest.mark.parametrize("status", [429, 418])
def test_a_rate_limit_refuses_everything_until_it_ends(
    sim: Simulator, wire: Wire, symbol: str, status: int
) -> None:
    sim.faults(fault(action={"rate_limit": {"status": status, "retry_after_s": 0.5}}))
    first, other = wire.create(symbol, "f1"), wire.query(symbol, "f1")
    assert (first.status, first.code, other.status) == (status, -1003, status)
    assert first.headers["Retry-After"] == "1"
    assert outcomes(sim, "f1") == ["limited"]
    wait_until(lambda: wire.create(symbol, "f2").status == 200, "the limit's end")


def test_a_redirect_is_counted_and_places_only_when_it_is_followed(
    sim: Simulator, wire: Wire, symbol: str
) -> None:
    sim.faults(fault(action={"redirect": True}, times=2))
    assert wire.create(symbol, "f1").status == 307
    assert (outcomes(sim, "f1"), placed(sim, "f1")) == (["redirected"], 0)
    assert wire.create(symbol, "f2", redirects=True).status == 200
    assert (outcomes(sim, "f2"), placed(sim, "f2")) == (["redirected", "executed"], 1)


@pytest.mark.parametrize(("execute", "orders"), [(False, 0), (True, 1)])
def test_a_reused_connection_is_closed_after_the_request_was_read(
    sim: Simulator, wire: Wire, symbol: str, execute: bool, orders: int
) -> None:
    sim.faults(fault(action={"close_reused": {"execute": execute}}))
    assert wire.create(symbol, "fresh").status == 200  # a new connection is left alone
    with pytest.raises(requests.ConnectionError):
        wire.create(symbol, "f1")
    assert (len(outcomes(sim, "f1")), placed(sim, "f1")) == (1, orders)
    first, second = sim.ledger(symbol=symbol)["requests"]
    assert first["connection"] == second["connection"]
    assert (first["request_on_connection"], second["request_on_connection"]) == (1, 2)


def test_an_unreachable_market_comes_back_after_its_time(
    sim: Simulator, wire: Wire, symbol: str
) -> None:
    sim.faults(unreachable(0.5, symbol=symbol))
    for ask in (lambda: wire.create(symbol, "f1"), lambda: wire.open_orders(symbol)):
        with pytest.raises(requests.ConnectionError):
            ask()
    assert wire.create("BTCUSDT").status == 200  # others go on
    assert (outcomes(sim, "f1"), placed(sim, "f1")) == (["dropped"], 0)

    def reachable() -> bool:
        try:
            return wire.open_orders(symbol) == []
        except requests.ConnectionError:
            return False

    wait_until(reachable, "the way back")


def test_a_hidden_order_is_shown_after_its_time(sim: Simulator, wire: Wire, symbol: str) -> None:
    sim.faults(hidden("query", for_s=0.4, symbol=symbol))
    wire.limit(symbol, "f1")
    assert wire.query(symbol, "f1").code == -2013
    assert wire.open_orders(symbol) == ["f1"]  # only the named look-up hides it
    wait_until(lambda: wire.query(symbol, "f1").status == 200, "the showing")


def test_every_look_up_can_hide_an_order(sim: Simulator, wire: Wire, symbol: str) -> None:
    sim.faults(hidden("query", "open_orders", "all_orders", "trades", "cancel", symbol=symbol))
    wire.limit(symbol, "f1")
    sim.fill(symbol, client_order_id="f1", quantity="0.5")
    assert wire.query(symbol, "f1").code == -2013
    assert wire.cancel(symbol, "f1").code == -2011
    assert wire.open_orders(symbol) == wire.all_orders(symbol) == []
    assert wire.trades(symbol) == []
    assert placed(sim, "f1") == 1


def test_finished_orders_may_leave_a_look_up_after_a_while(
    sim: Simulator, wire: Wire, symbol: str
) -> None:
    rule: dict[str, Any] = {"after_s": 0.3, "finished_only": True, "when": "finished"}
    sim.faults(hidden("query", symbol=symbol, **rule))
    wire.limit(symbol, "f1")
    sim.fill(symbol, client_order_id="f1")
    assert wire.query(symbol, "f1").json["status"] == "FILLED"
    wait_until(lambda: wire.query(symbol, "f1").code == -2013, "the leaving")
    assert wire.all_orders(symbol) == ["f1"]


def test_a_hiding_may_begin_with_the_end_of_the_order(
    sim: Simulator, wire: Wire, symbol: str
) -> None:
    sim.faults(hidden("query", for_s=0.4, when="finished", symbol=symbol))
    wire.limit(symbol, "f1")
    longer = time.monotonic() + 0.5
    wait_until(lambda: time.monotonic() > longer, "a time longer than the hiding")
    assert wire.query(symbol, "f1").json["status"] == "NEW"
    sim.fill(symbol, client_order_id="f1")
    assert wire.query(symbol, "f1").code == -2013
    wait_until(lambda: wire.query(symbol, "f1").status == 200, "the showing")


def test_only_finished_orders_are_hidden_where_the_fault_says_so(
    sim: Simulator, wire: Wire, symbol: str
) -> None:
    sim.faults(hidden("query", "all_orders", finished_only=True, symbol=symbol))
    wire.limit(symbol, "f1")
    assert wire.query(symbol, "f1").status == 200
    sim.fill(symbol, client_order_id="f1")
    assert wire.query(symbol, "f1").code == -2013
    assert len(wire.trades(symbol)) == 1


def test_an_order_that_exists_can_be_hidden_by_its_id(
    sim: Simulator, wire: Wire, symbol: str
) -> None:
    wire.limit(symbol, "f1")
    sim.faults(hidden("query", client_order_id="f1"))
    assert wire.query(symbol, "f1").code == -2013


def test_a_look_up_that_ignores_the_id_answers_with_another_order(
    sim: Simulator, wire: Wire, symbol: str
) -> None:
    wire.limit(symbol, "stranger")
    sim.faults(fault("query", action={"ignore_id": True}))
    assert wire.query(symbol, "f1").json["clientOrderId"] == "stranger"
    assert wire.query(symbol, "f1").code == -2013


def test_a_create_can_be_filled_in_part(sim: Simulator, wire: Wire, symbol: str) -> None:
    part = fault(action={"partial_fill": {"quantity": "0.25"}}, symbol=symbol, times=2)
    sim.faults(part)
    resting = wire.limit(symbol, "f1").json
    assert (resting["status"], resting["executedQty"]) == ("PARTIALLY_FILLED", "0.25000000")
    market = wire.create(symbol, "f2").json
    assert (market["status"], market["executedQty"]) == ("EXPIRED", "0.25000000")


def test_the_clock_steps_when_a_request_comes(sim: Simulator, wire: Wire, symbol: str) -> None:
    sim.faults(fault(action={"clock_offset_ms": 10_000}, symbol=symbol))
    assert wire.create("BTCUSDT").status == 200
    assert wire.create(symbol).code == -1021
    assert wire.public("/api/v3/time").json["serverTime"] > time.time() * 1000 + 9_000


def test_the_clock_steps_at_once_without_a_match(sim: Simulator, wire: Wire) -> None:
    [loaded] = sim.faults(fault(None, action={"clock_offset_ms": -7_000}))
    assert loaded["hits"] == 1
    assert wire.public("/api/v3/time").json["serverTime"] < time.time() * 1000 - 6_000


def test_the_simulator_stops_at_once_although_requests_are_held(symbol: str) -> None:
    with Simulator() as sim:
        sim.faults(fault("time", action={"drop_before": {"hold": True}}))
        with socket.create_connection(("127.0.0.1", sim.port)) as client:
            client.sendall(b"GET /api/v3/time HTTP/1.1\r\nHost: x\r\n\r\n")
            wait_until(lambda: sim.loaded_faults()[0]["hits"], "the hold")
            began = time.monotonic()
            sim.stop()
            assert time.monotonic() - began < 1
