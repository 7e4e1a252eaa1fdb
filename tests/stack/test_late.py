"""News that comes late or contradicts: the right quantities in the end, and a halted market."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import ccxt

from tests.stack.conftest import Stack, wire
from tests.support import simulator as faults
from tests.support.simulator import API_KEY, SECRET


def test_rejected_pushed_before_the_fills_drops_no_fill(main: Stack, symbol: str) -> None:
    name = main.resting(symbol)
    main.venue.push(wire(symbol), name, "REJECTED", "REJECTED")
    main.wait(name, "REJECTED")
    main.venue.fill(wire(symbol), client_order_id=name)
    intent = main.wait(name, "FILLED")
    assert intent["filled"] == "1"
    assert "contradicted" in main.events(name)
    assert main.halted(symbol)
    main.check(name)


def test_an_order_that_lives_on_after_its_end_was_told_is_followed_again(
    main: Stack, symbol: str
) -> None:
    """A look at the venue meets it, without any further push."""
    name = main.resting(symbol)
    main.venue.push(wire(symbol), name, "CANCELED", "CANCELED")
    # It may be met again before anybody sees that it had ended: the journal tells.
    main.desk.wait(lambda: "contradicted" in main.events(name), f"{name} is met again", 30)
    assert "CANCELED" in main.states(name)
    main.wait(name, "LIVE")
    assert main.halted(symbol)
    main.venue.fill(wire(symbol), client_order_id=name)
    main.wait(name, "FILLED")
    main.check(name)


def test_e2_a_second_order_under_a_used_id_is_followed_beside_the_first(
    main: Stack, symbol: str
) -> None:
    """The venue takes the ID again once the first order has ended; somebody else sends it."""
    name = main.submit(symbol)
    main.wait(name, "FILLED")
    stranger = main.venue.point(ccxt.binance({"apiKey": API_KEY, "secret": SECRET}))
    stranger.load_markets()
    stranger.create_order(symbol, "market", "buy", 2, None, {"newClientOrderId": name})
    second = f"{name}-2"
    main.desk.wait(lambda: main.intent(second).get("state") == "FILLED", f"{second} is there", 20)
    assert [main.intent(each)["filled"] for each in (name, second)] == ["1", "2"]
    assert main.halted(symbol)
    ledger = main.venue.ledger(client_order_id=name)
    executed = sorted(str(row["trade_id"]) for row in ledger["executions"])
    fills = [fill for each in (name, second) for fill in main.intent(each)["fills"]]
    assert sorted(str(fill["venue_trade_id"]) for fill in fills) == executed
    assert "two venue orders" in str(main.intent(name)["transitions"])


def test_an_order_that_the_venue_names_for_two_intents_belongs_to_one(
    polled: Stack, symbol: str
) -> None:
    first = polled.submit(symbol)
    order = polled.wait(first, "FILLED")["venue_order_id"]
    polled.venue.faults(faults.silent_answer(symbol=wire(symbol)))
    name = polled.submit(symbol)
    now_ms = int(datetime.now(UTC).timestamp() * 1000)
    wrong: dict[str, Any] = {
        "symbol": wire(symbol), "orderId": int(order), "clientOrderId": name, "price": "0",
        "origQty": "1", "executedQty": "1", "cummulativeQuoteQty": "100", "status": "FILLED",
        "timeInForce": "GTC", "type": "MARKET", "side": "BUY", "time": now_ms,
        "updateTime": now_ms, "isWorking": True,
    }  # fmt: skip
    polled.venue.faults(
        faults.answered(200, wrong, path="query", symbol=wire(symbol), client_order_id=name)
    )
    intent = polled.wait(name, "FILLED")
    assert intent["venue_order_id"] != order
    assert "belongs to another intent" in str(intent["transitions"])
    assert polled.halted(symbol)
    for each in (first, name):
        polled.check(each)


def test_what_ended_without_execution_is_watched_until_nothing_can_arrive(
    polled: Stack, symbol: str
) -> None:
    name = polled.resting(symbol)
    polled.call("POST", f"intents/{name}/cancel")
    polled.wait(name, "CANCELED")
    watched = f"SELECT watched_since FROM orders_intent WHERE client_order_id = '{name}'"
    assert polled.desk.sql(watched) != [(None,)]
    polled.desk.wait(lambda: polled.desk.sql(watched) == [(None,)], "the watch is over", 30)
    assert polled.events(name)[-1] == "canceled"
    assert not polled.halted(symbol)
