"""Reads binance spot's own JSON. Source: developers.binance.com, spot REST API and user data
stream.

The raw answer is read, not what ccxt makes of it: ccxt may leave the client order ID out, and it
returns an order without an ID for an answer that says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from venues.gateway import OrderReport, OrderStatus, TradeReport

Row = Mapping[str, Any]
SymbolOf = Callable[[str], str]  # the venue's name of a market -> ours

NO_SUCH_ORDER = "-2013"  # "Order does not exist." of GET /api/v3/order
ORDER_EVENT = "executionReport"
# The venue pushes nothing more here, though the connection stays. Measured on ccxt 4.5.90: it
# takes note, but whoever waits for orders waits for ever.
LAST_EVENT = "eventStreamTerminated"
_BANNED = re.compile(r"banned until (\d{13})")
_STATUS = {
    "NEW": OrderStatus.OPEN,
    "PENDING_NEW": OrderStatus.OPEN,
    "PARTIALLY_FILLED": OrderStatus.OPEN,
    "PENDING_CANCEL": OrderStatus.OPEN,
    "FILLED": OrderStatus.FILLED,
    "CANCELED": OrderStatus.CANCELED,
    "EXPIRED": OrderStatus.CANCELED,
    "EXPIRED_IN_MATCH": OrderStatus.CANCELED,
    "REJECTED": OrderStatus.REJECTED,
}
_SAYS_ENOUGH = frozenset({OrderStatus.OPEN, OrderStatus.FILLED})


def error_of(payload: Any) -> tuple[str, str]:
    """Code and words of an error answer; "" for an answer that is none."""
    if isinstance(payload, Mapping) and "code" in payload:
        return str(payload["code"]), str(payload.get("msg", ""))
    return "", ""


def banned_until_venue_ms(words: str) -> int | None:
    """The end of a ban, where the words tell it."""
    found = _BANNED.search(words)
    return int(found[1]) if found else None


def venue_order_id(row: Row) -> str:
    number = row.get("orderId")
    return "" if isinstance(number, bool) or number in (None, "", -1) else str(number)


def client_order_id(row: Row) -> str:
    """Ours. A cancelled order's answer carries the cancel's own ID under clientOrderId."""
    return str(row.get("origClientOrderId") or row.get("clientOrderId") or "")


def read_order(row: Row, symbol_of: SymbolOf) -> OrderReport:
    """One order. Raises KeyError, ValueError, TypeError or ArithmeticError."""
    number = venue_order_id(row)
    if not number:
        raise ValueError("an order without orderId")
    filled = _decimal(row["executedQty"])
    word = str(row["status"])
    status = _STATUS.get(word, OrderStatus.UNKNOWN)
    symbol, side = symbol_of(str(row["symbol"])), str(row["side"]).lower()
    return OrderReport(
        venue_order_id=number,
        client_order_id=client_order_id(row),
        symbol=symbol,
        side=side,
        status=status,
        quantity=_decimal(row["origQty"]),
        filled=filled,
        average_price=_average(row.get("cummulativeQuoteQty"), filled),
        reason="" if status in _SAYS_ENOUGH else word,
        at_venue_ms=_first_ms(row, "updateTime", "transactTime", "time"),
        trades=tuple(_read_fill(fill, row, symbol, side) for fill in row.get("fills", ())),
    )


def _read_fill(fill: Row, row: Row, symbol: str, side: str) -> TradeReport:
    """An execution within the answer to a create."""
    return TradeReport(
        venue_trade_id=str(fill["tradeId"]),
        venue_order_id=venue_order_id(row),
        symbol=symbol,
        side=side,
        quantity=_decimal(fill["qty"]),
        price=_decimal(fill["price"]),
        fee=_decimal(fill["commission"]),
        fee_currency=str(fill["commissionAsset"] or ""),
        at_venue_ms=int(row["transactTime"]),
    )


def read_trade(row: Row, symbol_of: SymbolOf) -> TradeReport:
    """One row of myTrades. Raises like read_order."""
    return TradeReport(
        venue_trade_id=str(row["id"]),
        venue_order_id=str(row["orderId"]),
        symbol=symbol_of(str(row["symbol"])),
        side="buy" if row["isBuyer"] else "sell",
        quantity=_decimal(row["qty"]),
        price=_decimal(row["price"]),
        fee=_decimal(row["commission"]),
        fee_currency=str(row["commissionAsset"] or ""),
        at_venue_ms=int(row["time"]),
    )


def event_of(message: Row) -> Row | None:
    """The event that a message of the stream carries; None for an answer to a request of ours."""
    event = message.get("event", message)
    return event if isinstance(event, Mapping) and "e" in event else None


def read_push(event: Row, symbol_of: SymbolOf) -> OrderReport:
    """An executionReport, with its execution where it tells of one. Raises like read_order."""
    symbol, side, word = symbol_of(str(event["s"])), str(event["S"]).lower(), str(event["X"])
    filled, status = _decimal(event["z"]), _STATUS.get(word, OrderStatus.UNKNOWN)
    told = str(event.get("r") or "NONE")
    reason = "" if status in _SAYS_ENOUGH else word if told == "NONE" else f"{word} {told}"
    traded = event.get("x") == "TRADE"
    return OrderReport(
        venue_order_id=str(event["i"]),
        # C is the order's own ID where c is a cancel's.
        client_order_id=str(event.get("C") or event["c"]),
        symbol=symbol,
        side=side,
        status=status,
        quantity=_decimal(event["q"]),
        filled=filled,
        average_price=_average(event.get("Z"), filled),
        reason=reason,
        at_venue_ms=int(event["T"]),
        trades=(_read_push_trade(event, symbol, side),) if traded else (),
    )


def _read_push_trade(event: Row, symbol: str, side: str) -> TradeReport:
    return TradeReport(
        venue_trade_id=str(event["t"]),
        venue_order_id=str(event["i"]),
        symbol=symbol,
        side=side,
        quantity=_decimal(event["l"]),
        price=_decimal(event["L"]),
        fee=_decimal(event.get("n") or "0"),
        fee_currency=str(event.get("N") or ""),
        at_venue_ms=int(event["T"]),
    )


def _decimal(value: Any) -> Decimal:
    if isinstance(value, float):  # never so in binance's JSON; a float has lost digits already
        raise TypeError(f"{value} came as a float")
    number = Decimal(value)
    if not number.is_finite():
        raise ValueError(f"{value} is no amount")
    return number


def _average(quote: Any, filled: Decimal) -> Decimal | None:
    """Below zero stands for "not known" in the venue's old orders."""
    spent = _decimal(quote) if quote is not None else Decimal(-1)
    return spent / filled if filled > 0 and spent > 0 else None


def _first_ms(row: Row, *names: str) -> int | None:
    return next((int(row[name]) for name in names if row.get(name) is not None), None)
