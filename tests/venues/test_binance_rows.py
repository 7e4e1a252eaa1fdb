"""Binance's own JSON, read as it stands in its documentation."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from venues.ccxt_gateway import binance
from venues.gateway import OrderStatus

# "New order", response FULL, and "Cancel order", from the spot REST API's documentation.
FULL: dict[str, Any] = {
    "symbol": "BTCUSDT",
    "orderId": 28,
    "clientOrderId": "6gCrw2kRUAF9CvJDGP16IP",
    "transactTime": 1507725176595,
    "price": "0.00000000",
    "origQty": "10.00000000",
    "executedQty": "10.00000000",
    "cummulativeQuoteQty": "40000.00000000",
    "status": "FILLED",
    "side": "SELL",
    "fills": [
        {
            "price": "4000.00000000",
            "qty": "10.00000000",
            "commission": "4.00000000",
            "commissionAsset": "USDT",
            "tradeId": 56,
        }
    ],
}
CANCELED = {
    **FULL,
    "origClientOrderId": "myOrder1",
    "clientOrderId": "cancelMyOrder1",
    "status": "CANCELED",
    "fills": [],
}


def symbol_of(name: str) -> str:
    return {"BTCUSDT": "BTC/USDT"}.get(name, name)


def test_a_full_answer_is_read_with_its_executions() -> None:
    report = binance.read_order(FULL, symbol_of)
    assert (report.venue_order_id, report.client_order_id) == ("28", "6gCrw2kRUAF9CvJDGP16IP")
    assert (report.symbol, report.side, report.status) == ("BTC/USDT", "sell", OrderStatus.FILLED)
    assert report.quantity == report.filled == 10
    assert report.average_price == 4000
    assert (report.at_venue_ms, report.reason) == (1507725176595, "")
    [trade] = report.trades
    assert (trade.venue_trade_id, trade.venue_order_id) == ("56", "28")
    assert (trade.quantity, trade.price) == (Decimal(10), Decimal(4000))
    assert (trade.fee, trade.fee_currency) == (Decimal(4), "USDT")


def test_the_answer_to_a_cancel_names_the_order_by_its_original_id() -> None:
    assert binance.read_order(CANCELED, symbol_of).client_order_id == "myOrder1"


@pytest.mark.parametrize(
    ("word", "status", "reason"),
    [
        ("NEW", OrderStatus.OPEN, ""),
        ("PENDING_NEW", OrderStatus.OPEN, ""),
        ("PARTIALLY_FILLED", OrderStatus.OPEN, ""),
        ("PENDING_CANCEL", OrderStatus.OPEN, ""),
        ("FILLED", OrderStatus.FILLED, ""),
        ("CANCELED", OrderStatus.CANCELED, "CANCELED"),
        ("EXPIRED", OrderStatus.CANCELED, "EXPIRED"),
        ("EXPIRED_IN_MATCH", OrderStatus.CANCELED, "EXPIRED_IN_MATCH"),
        ("REJECTED", OrderStatus.REJECTED, "REJECTED"),
        ("FROZEN", OrderStatus.UNKNOWN, "FROZEN"),
        ("", OrderStatus.UNKNOWN, ""),
    ],
)
def test_every_word_has_its_status_and_a_new_word_is_unknown(
    word: str, status: OrderStatus, reason: str
) -> None:
    report = binance.read_order({**FULL, "status": word}, symbol_of)
    assert (report.status, report.reason) == (status, reason)


def test_amounts_that_are_not_known_give_no_average() -> None:
    """Below zero stands for "not available" in old orders."""
    assert (
        binance.read_order({**FULL, "cummulativeQuoteQty": "-1"}, symbol_of).average_price is None
    )
    unfilled = {**FULL, "executedQty": "0", "cummulativeQuoteQty": "0"}
    assert binance.read_order(unfilled, symbol_of).average_price is None


@pytest.mark.parametrize(
    "changes",
    [
        {"orderId": None},
        {"orderId": ""},
        {"orderId": True},
        {"executedQty": "some"},
        {"executedQty": "NaN"},
        {"executedQty": 0.1},
        {"origQty": None},
        {"fills": [{"price": "1"}]},
    ],
)
def test_what_cannot_be_read_raises(changes: dict[str, Any]) -> None:
    with pytest.raises((KeyError, ValueError, TypeError, ArithmeticError)):
        binance.read_order({**FULL, **changes}, symbol_of)


# "Order update" of the user data stream's documentation.
PUSH: dict[str, Any] = {
    "e": "executionReport",
    "s": "BTCUSDT",
    "c": "mUvoqJxFIILMdfAW5iGSOW",
    "S": "BUY",
    "q": "1.00000000",
    "C": "",
    "x": "TRADE",
    "X": "PARTIALLY_FILLED",
    "r": "NONE",
    "i": 4293153,
    "l": "0.40000000",
    "z": "0.70000000",
    "L": "0.10264410",
    "n": "0.001",
    "N": "BNB",
    "T": 1499405658657,
    "t": 77,
    "Z": "0.07185087",
}


def test_an_execution_is_pushed_with_its_trade() -> None:
    report = binance.read_push(PUSH, symbol_of)
    assert (report.client_order_id, report.status) == ("mUvoqJxFIILMdfAW5iGSOW", OrderStatus.OPEN)
    assert (report.quantity, report.filled) == (Decimal(1), Decimal("0.7"))
    [trade] = report.trades
    assert (trade.venue_trade_id, trade.quantity, trade.price) == (
        "77",
        Decimal("0.4"),
        Decimal("0.10264410"),
    )
    assert (trade.fee, trade.fee_currency) == (Decimal("0.001"), "BNB")


def test_a_push_about_a_cancel_carries_our_id_as_the_original_one() -> None:
    push = {**PUSH, "x": "CANCELED", "X": "CANCELED", "c": "cancel1", "C": "ours"}
    report = binance.read_push(push, symbol_of)
    assert (report.client_order_id, report.trades) == ("ours", ())
    assert (report.status, report.reason) == (OrderStatus.CANCELED, "CANCELED")


def test_a_refusal_by_the_matching_engine_says_why() -> None:
    push = {**PUSH, "x": "REJECTED", "X": "REJECTED", "r": "INSUFFICIENT_BALANCES", "N": None}
    report = binance.read_push(push, symbol_of)
    assert (report.status, report.reason) == (
        OrderStatus.REJECTED,
        "REJECTED INSUFFICIENT_BALANCES",
    )


def test_the_end_of_a_ban_is_read_from_the_words() -> None:
    words = "Way too much request weight used; IP banned until 1796093079247. Please use"
    assert binance.banned_until_venue_ms(words) == 1796093079247
    assert binance.banned_until_venue_ms("Too much request weight used") is None
