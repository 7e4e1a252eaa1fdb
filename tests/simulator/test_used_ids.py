"""The three ways in which a venue may treat a client order ID that it has seen before."""

from __future__ import annotations

import pytest
import requests

from tests.simulator.wire import Wire
from tests.support.simulator import Simulator, dropped_before, refused

ALL_RULES = ("unique_while_open", "rejected_forever", "burned")


@pytest.mark.parametrize("rule", ALL_RULES)
def test_an_id_of_an_open_order_is_a_duplicate_under_every_rule(
    sim: Simulator, wire: Wire, symbol: str, rule: str
) -> None:
    sim.rules(rule)
    wire.limit(symbol, "u1")
    answer = wire.limit(symbol, "u1")
    assert (answer.code, answer.json["msg"]) == (-2010, "Duplicate order sent.")
    assert len(sim.ledger(client_order_id="u1")["orders"]) == 1


@pytest.mark.parametrize(
    ("rule", "orders"), [("unique_while_open", 2), ("rejected_forever", 1), ("burned", 1)]
)
def test_an_id_of_a_finished_order_is_free_again_only_at_binance(
    sim: Simulator, wire: Wire, symbol: str, rule: str, orders: int
) -> None:
    sim.rules(rule)
    wire.create(symbol, "u2")
    wire.create(symbol, "u2")
    assert len(sim.ledger(client_order_id="u2")["orders"]) == orders


@pytest.mark.parametrize(
    ("rule", "orders"), [("unique_while_open", 1), ("rejected_forever", 1), ("burned", 0)]
)
@pytest.mark.parametrize("why", ["filter", "malformed", "fault"])
def test_an_id_of_a_failed_request_is_burned_only_where_the_venue_burns(
    sim: Simulator, wire: Wire, symbol: str, rule: str, orders: int, why: str
) -> None:
    sim.rules(rule)
    if why == "fault":
        sim.faults(refused(-1013, "Filter failure: TEST", symbol=symbol))
    quantity = {"filter": "0.00001", "malformed": "one", "fault": "1"}[why]
    assert wire.create(symbol, "u3", quantity=quantity).code in (-1013, -1100)
    wire.create(symbol, "u3")
    assert len(sim.ledger(client_order_id="u3")["orders"]) == orders


def test_a_request_that_the_venue_never_saw_burns_nothing(
    sim: Simulator, wire: Wire, symbol: str
) -> None:
    sim.rules("burned")
    sim.faults(dropped_before(symbol=symbol))
    with pytest.raises(requests.ConnectionError):
        wire.create(symbol, "u4")
    assert wire.create(symbol, "u4").status == 200


def test_the_rule_can_be_chosen_on_the_command_line() -> None:
    with Simulator(used_id="rejected_forever") as sim, Wire(sim) as wire:
        assert wire.create("BTCUSDT", "u5").status == 200
        assert wire.create("BTCUSDT", "u5").json["msg"] == "Duplicate order sent."
