"""Orders as binance treats them: what fills, what rests, what is refused, what the ledger says."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from tests.simulator.wire import Wire
from tests.support.simulator import Simulator


def test_a_market_order_fills_at_once_and_the_ledger_shows_it(
    sim: Simulator, wire: Wire, symbol: str
) -> None:
    answer = wire.create(symbol, "m1")
    assert answer.status == 200
    assert answer.json["status"] == "FILLED"
    [fill] = answer.json["fills"]
    ledger = sim.ledger(client_order_id="m1")
    [request], [order], [execution] = ledger["requests"], ledger["orders"], ledger["executions"]
    assert request["outcome"] == "executed"
    assert request["order_id"] == order["order_id"] == answer.json["orderId"]
    assert not {"signature", "apiKey"} & request["params"].keys()
    assert execution["trade_id"] == fill["tradeId"]
    assert (order["executed"], execution["price"]) == ("1", "100")


def test_a_large_market_order_fills_in_several_fills_at_worse_prices(
    wire: Wire, symbol: str
) -> None:
    fills = wire.create(symbol, quantity="450").json["fills"]
    assert [(f["price"][:6], f["qty"][:3]) for f in fills] == [
        ("100.00", "200"),
        ("100.01", "200"),
        ("100.02", "50."),
    ]


def test_the_answer_has_the_length_that_was_asked_for(wire: Wire, symbol: str) -> None:
    ack = wire.create(symbol, newOrderRespType="ACK").json
    result = wire.create(symbol, newOrderRespType="RESULT").json
    assert "status" not in ack
    assert result["status"] == "FILLED"
    assert "fills" not in result


def test_a_resting_order_fills_when_the_price_crosses_it(
    sim: Simulator, wire: Wire, symbol: str
) -> None:
    assert wire.limit(symbol, "r1").json["status"] == "NEW"
    sim.price(symbol, "90.01")
    assert wire.open_orders(symbol) == ["r1"]
    sim.price(symbol, "90")
    assert wire.open_orders(symbol) == []
    assert wire.query(symbol, "r1").json["status"] == "FILLED"
    assert [t["isMaker"] for t in wire.trades(symbol)] == [True]


def test_a_large_resting_order_fills_in_parts_as_the_price_moves(
    sim: Simulator, wire: Wire, symbol: str
) -> None:
    wire.limit(symbol, "r2", quantity="300")
    sim.price(symbol, "90")
    partly = wire.query(symbol, "r2").json
    assert (partly["status"], partly["executedQty"]) == ("PARTIALLY_FILLED", "200.00000000")
    sim.price(symbol, "89.5")
    assert wire.query(symbol, "r2").json["status"] == "FILLED"


def test_a_fill_can_be_forced(sim: Simulator, wire: Wire, symbol: str) -> None:
    wire.limit(symbol, "r3")
    assert sim.fill(symbol, client_order_id="r3", quantity="0.4")["status"] == "PARTIALLY_FILLED"
    assert sim.fill(symbol, client_order_id="r3")["status"] == "FILLED"
    assert [t["qty"] for t in wire.trades(symbol)] == ["0.40000000", "0.60000000"]


@pytest.mark.parametrize(
    ("time_in_force", "quantity", "status", "executed"),
    [
        ("GTC", "300", "PARTIALLY_FILLED", "200"),
        ("IOC", "300", "EXPIRED", "200"),
        ("FOK", "300", "EXPIRED", "0"),
        ("FOK", "200", "FILLED", "200"),
    ],
)
def test_time_in_force_decides_about_the_rest(
    wire: Wire, symbol: str, time_in_force: str, quantity: str, status: str, executed: str
) -> None:
    answer = wire.limit(symbol, price="100", quantity=quantity, timeInForce=time_in_force).json
    assert answer["status"] == status
    assert Decimal(answer["executedQty"]) == Decimal(executed)


def test_post_only_never_takes(sim: Simulator, wire: Wire, symbol: str) -> None:
    refused = wire.create(symbol, "p1", type="LIMIT_MAKER", price="100")
    assert (refused.status, refused.code) == (400, -2010)
    assert refused.json["msg"] == "Order would immediately match and take."
    assert wire.create(symbol, "p2", type="LIMIT_MAKER", price="99").json["status"] == "NEW"
    assert [order["client_order_id"] for order in sim.ledger(symbol=symbol)["orders"]] == ["p2"]


def test_balances_follow_open_orders_and_executions(
    sim: Simulator, wire: Wire, symbol: str
) -> None:
    base = symbol.removesuffix("USDT")
    wire.limit(symbol, "b1")
    assert wire.balance("USDT") == ("99999910.00000000", "90.00000000")
    wire.cancel(symbol, "b1")
    assert wire.balance("USDT") == ("100000000.00000000", "0.00000000")
    wire.create(symbol)
    assert wire.balance("USDT") == ("99999900.00000000", "0.00000000")
    assert wire.balance(base) == ("1000000.99900000", "0.00000000")  # less 0.1 % commission


def test_a_better_price_gives_the_difference_back(wire: Wire, symbol: str) -> None:
    wire.limit(symbol, price="110")
    assert wire.balance("USDT") == ("99999900.00000000", "0.00000000")
    # 200 at 100, 200 at 100.01; 100 rest and lock no more than they may cost.
    wire.limit(symbol, price="100.01", quantity="500")
    assert wire.balance("USDT")[1] == "10001.00000000"


def test_cancel_by_client_id_answers_with_both_ids(wire: Wire, symbol: str) -> None:
    wire.limit(symbol, "c1")
    answer = wire.cancel(symbol, "c1").json
    assert (answer["origClientOrderId"], answer["status"]) == ("c1", "CANCELED")
    assert answer["clientOrderId"] != "c1"
    again = wire.cancel(symbol, "c1")
    assert (again.code, again.json["msg"]) == (-2011, "Unknown order sent.")


def test_all_open_orders_of_a_symbol_are_cancelled_together(wire: Wire, symbol: str) -> None:
    wire.limit(symbol, "c2")
    wire.limit(symbol, "c3")
    answer = wire.signed("DELETE", "/api/v3/openOrders", symbol=symbol).json
    assert {row["origClientOrderId"] for row in answer} == {"c2", "c3"}
    assert wire.open_orders(symbol) == []


def test_the_lists_page_by_id(wire: Wire, symbol: str) -> None:
    ids = [wire.create(symbol, f"l{n}").json["orderId"] for n in range(5)]
    assert wire.all_orders(symbol, limit=2) == ["l3", "l4"]
    assert wire.all_orders(symbol, orderId=ids[1], limit=2) == ["l1", "l2"]
    trades = wire.trades(symbol)
    assert wire.trades(symbol, fromId=trades[3]["id"]) == trades[3:]
    assert wire.trades(symbol, orderId=ids[2]) == [trades[2]]
    assert wire.trades(symbol, startTime=trades[-1]["time"] + 1) == []


@pytest.mark.parametrize(
    ("params", "code", "words"),
    [
        ({"quantity": "0.00001"}, -1013, "LOT_SIZE"),
        ({"quantity": "0.0001"}, -1013, "NOTIONAL"),
        ({"type": "LIMIT", "timeInForce": "GTC", "price": "90.001"}, -1013, "PRICE_FILTER"),
        ({"quantity": "2000000"}, -2010, "insufficient balance"),
        ({"quantity": None}, -1102, "quantity"),
        ({"type": "LIMIT", "price": "90"}, -1102, "timeInForce"),
        ({"quantity": "-1"}, -1100, "quantity"),
        ({"side": "HOLD"}, -1117, "side"),
        ({"type": "STOP"}, -1116, "orderType"),
        ({"price": "90"}, -1106, "price"),
        ({"newClientOrderId": "a b"}, -1100, "newClientOrderId"),
        ({"newClientOrderId": "x" * 37}, -1100, "newClientOrderId"),
        ({"symbol": "NOPEUSDT"}, -1121, "Invalid symbol."),
        ({"symbol": None}, -1102, "symbol"),
    ],
)
def test_bad_orders_are_refused_in_binances_words(
    sim: Simulator, wire: Wire, symbol: str, params: dict[str, str | None], code: int, words: str
) -> None:
    order: dict[str, Any] = {"symbol": symbol, "side": "BUY", "type": "MARKET", "quantity": "1"}
    answer = wire.signed("POST", "/api/v3/order", **(order | params))
    assert (answer.status, answer.code) == (400, code)
    assert words in answer.json["msg"]
    ledger = sim.ledger()
    assert ledger["orders"] == []
    assert [(r["outcome"], r["code"]) for r in ledger["requests"]] == [("refused", code)]


def test_unknown_orders_are_said_to_be_unknown(wire: Wire, symbol: str) -> None:
    answer = wire.query(symbol, "nobody")
    assert (answer.status, answer.code) == (400, -2013)
    assert answer.json["msg"] == "Order does not exist."


def test_a_wrong_signature_places_nothing(sim: Simulator, wire: Wire, symbol: str) -> None:
    assert wire.create(symbol, secret="other").code == -1022
    assert wire.create(symbol, key=None).code == -2014
    assert sim.ledger()["orders"] == []


def test_only_known_keys_are_let_in_where_keys_are_given() -> None:
    with Simulator("--key", "mine") as sim, Wire(sim) as wire:
        assert wire.create("BTCUSDT").code == -2015
        assert wire.create("BTCUSDT", key="mine").status == 200


def test_a_request_is_refused_for_its_age_by_the_venues_clock(
    sim: Simulator, wire: Wire, symbol: str
) -> None:
    sim.clock(3_000)
    assert wire.create(symbol, "old", recvWindow=2_000).code == -1021
    assert wire.create(symbol, "young", recvWindow=4_000).status == 200
    sim.clock(-1_500)
    assert wire.create(symbol, "early").code == -1021
    assert [order["client_order_id"] for order in sim.ledger()["orders"]] == ["young"]


def test_a_venue_without_expiry_takes_old_requests(sim: Simulator, wire: Wire, symbol: str) -> None:
    sim.rules(honour_expiry=False)
    sim.clock(60_000)
    assert wire.create(symbol, recvWindow=1_000).status == 200


def test_order_and_trade_ids_grow_across_a_restart() -> None:
    last = (0, 0)
    for _ in range(2):
        with Simulator() as sim, Wire(sim) as wire:
            answer = wire.create("BTCUSDT").json
        ids = (answer["orderId"], answer["fills"][0]["tradeId"])
        assert ids[0] > last[0]
        assert ids[1] > last[1]
        last = ids


def test_one_symbol_can_be_reset_alone(sim: Simulator, wire: Wire) -> None:
    wire.limit("ETHUSDT", "e1", price="2000")
    wire.create("BTCUSDT", "b1")
    sim.reset("BTCUSDT")
    ledger = sim.ledger()
    for part in ("requests", "orders"):
        assert [item["client_order_id"] for item in ledger[part]] == ["e1"]
    assert (ledger["executions"], ledger["calls"]) == ([], {"create": {"ETHUSDT": 1}})
    assert wire.query("BTCUSDT", "b1").code == -2013
    assert wire.open_orders("ETHUSDT") == ["e1"]


def test_the_ledger_counts_look_ups(sim: Simulator, wire: Wire, symbol: str) -> None:
    wire.create(symbol, "n1")
    wire.query(symbol, "n1")
    wire.query(symbol, "n1")
    wire.open_orders(symbol)
    calls = sim.ledger(symbol=symbol)["calls"]
    assert calls == {"create": {symbol: 1}, "query": {symbol: 2}, "open_orders": {symbol: 1}}
    assert sim.ledger(client_order_id="n1")["calls"]["query"] == {symbol: 2}


def test_prices_walk_by_the_seed_unless_they_stand_still(wire: Wire) -> None:
    with Simulator("--tick-ms", "1", still=False) as moving, Wire(moving) as other:
        before = other.public("/api/v3/ticker/price?symbol=BTCUSDT").json["price"]
        for _ in range(1000):
            if other.public("/api/v3/ticker/price?symbol=BTCUSDT").json["price"] != before:
                break
        else:
            pytest.fail("the price never moved")
    assert wire.public("/api/v3/ticker/price?symbol=BTCUSDT").json["price"] == "60000.00000000"
