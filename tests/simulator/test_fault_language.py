"""Which request meets which fault, and what a plan may not say."""

from __future__ import annotations

from typing import Any

import pytest
import requests

from tests.simulator.wire import Wire, placed, wait_until
from tests.support.simulator import (
    Simulator,
    SimulatorError,
    answered,
    fault,
    hidden,
    lost_answer,
    refused,
)


def test_faults_count_what_they_saw_and_met(sim: Simulator, wire: Wire, symbol: str) -> None:
    sim.faults(refused(-1, "second", symbol=symbol, ordinal=2))
    sim.faults(refused(-2, "from the fourth", symbol=symbol, from_ordinal=4, times=2))
    codes = [wire.create(symbol).code for _ in range(6)]
    assert codes == [None, -1, None, -2, -2, None]
    assert [(f["seen"], f["hits"]) for f in sim.loaded_faults()] == [(6, 1), (6, 2)]
    sim.clear_faults()
    assert sim.loaded_faults() == []


def test_a_fault_may_last_for_ever_or_from_its_first_hit(
    sim: Simulator, wire: Wire, symbol: str
) -> None:
    sim.faults(refused(-1, "always", symbol=symbol, times=None))
    assert [wire.create(symbol).code for _ in range(5)] == [-1] * 5
    sim.clear_faults()
    sim.faults(refused(-2, "soon over", symbol=symbol, for_s=0.3, for_s_from="first_hit"))
    assert wire.create(symbol).code == -2
    wait_until(lambda: wire.create(symbol).status == 200, "the fault's end")


def test_faults_that_exclude_each_other_come_one_after_the_other(
    sim: Simulator, wire: Wire, symbol: str
) -> None:
    sim.faults(refused(-1, "first", symbol=symbol), answered(504, symbol=symbol))
    sim.faults(refused(-2, "then", symbol=symbol))
    answers = [wire.create(symbol) for _ in range(4)]
    assert [(a.status, a.code) for a in answers] == [(400, -1), (504, None), (400, -2), (200, None)]


def test_faults_of_different_kinds_meet_one_request_together(
    sim: Simulator, wire: Wire, symbol: str
) -> None:
    sim.faults(lost_answer(symbol=symbol), hidden("query", symbol=symbol))
    with pytest.raises(requests.ConnectionError):
        wire.limit(symbol, "f1")
    assert wire.query(symbol, "f1").code == -2013
    assert placed(sim, "f1") == 1


def test_a_fault_is_matched_by_method_path_and_id(sim: Simulator, wire: Wire, symbol: str) -> None:
    sim.faults(
        fault("/api/v3/openOrders", action={"refuse": {"code": -1, "msg": "exact"}}),
        fault("/api/v3/my*", action={"refuse": {"code": -2, "msg": "prefix"}}),
        fault(None, method="DELETE", action={"refuse": {"code": -3, "msg": "method"}}),
        fault("query", client_order_id="f2", action={"refuse": {"code": -4, "msg": "id"}}),
    )
    order_id = wire.limit(symbol, "f2").json["orderId"]
    assert wire.query(symbol, "f1").code == -2013
    assert wire.signed("GET", "/api/v3/openOrders", symbol=symbol).code == -1
    assert wire.signed("GET", "/api/v3/myTrades", symbol=symbol).code == -2
    assert wire.cancel(symbol, "f2").code == -3
    assert wire.signed("GET", "/api/v3/order", symbol=symbol, orderId=order_id).code == -4


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        ({"action": {}}, "faults[0].action"),
        ({}, "faults[0].action"),
        ({"action": {"explode": True}}, "faults[0].action.explode"),
        ({"action": {"delay_before_ms": "1"}}, "faults[0].action.delay_before_ms"),
        ({"action": {"delay_before_ms": -1}}, "faults[0].action.delay_before_ms"),
        ({"action": {"drop_before": False}}, "faults[0].action.drop_before"),
        ({"action": {"drop_before": True, "drop_after": True}}, "faults[0].action"),
        ({"action": {"refuse": {"code": 1}}}, "faults[0].action.refuse.msg"),
        ({"action": {"respond": {"status": 99}}}, "faults[0].action.respond.status"),
        ({"action": {"hide": {"from": ["moon"], "for_s": 1}}}, "faults[0].action.hide.from[0]"),
        ({"action": {"hide": {"from": ["query"]}}}, "faults[0].action.hide"),
        ({"action": {"partial_fill": {"quantity": 1}}}, "faults[0].action.partial_fill.quantity"),
        ({"action": {"unreachable": True}, "match": {"time": 1}}, "faults[0].match.time"),
        ({"action": {"unreachable": True}, "match": {"ordinal": 0}}, "faults[0].match.ordinal"),
        ({"action": {"unreachable": True}, "when": 1}, "faults[0].when"),
        ({"action": {"stream_duplicate": True, "unreachable": True}}, "faults[0].action"),
        ({"action": {"stream_duplicate": True}, "match": {"path": "x"}}, "faults[0].match.path"),
    ],
)
def test_bad_faults_are_refused_by_name_and_nothing_is_loaded(
    sim: Simulator, bad: dict[str, Any], named: str
) -> None:
    with pytest.raises(SimulatorError) as error:
        sim.faults(bad)
    assert f'"{named}' in str(error.value)
    assert sim.loaded_faults() == []


def test_bad_calls_of_the_other_endpoints_are_refused_by_name(sim: Simulator, symbol: str) -> None:
    for call, named in (
        (lambda: sim.price("NOPE", "1"), "symbol"),
        (lambda: sim.price(symbol, "-1"), "price"),
        (lambda: sim.rules("sometimes"), "used_id"),
        (lambda: sim.fill(symbol, client_order_id="nobody"), "client_order_id"),
        (lambda: sim.reset("NOPE"), "symbol"),
    ):
        with pytest.raises(SimulatorError, match=named):
            call()
