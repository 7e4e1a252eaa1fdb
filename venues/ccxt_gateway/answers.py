"""From what came back over the wire to what the classification takes."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from venues.ccxt_gateway import binance
from venues.ccxt_gateway.binance import SymbolOf
from venues.gateway import OrderReport, TradeReport
from venues.outcome import Answer, OrderName
from venues.profiles import Rung
from venues.transport import Recording, Wire

MALFORMED = (KeyError, ValueError, TypeError, ArithmeticError, AttributeError)

Found = tuple[tuple[OrderReport, ...], tuple[TradeReport, ...]]


def payload_of(wire: Wire | None) -> Any:
    """The answer as JSON, its numbers exact; None where it is not whole or no JSON."""
    if wire is None or not wire.whole:
        return None
    try:
        return json.loads(wire.text, parse_float=Decimal)
    except ValueError:
        return None


def is_ok(wire: Wire | None) -> bool:
    return wire is not None and wire.whole and wire.status == 200


def answer_of(
    ours: OrderName, kept: Recording, error: Exception | None, symbol_of: SymbolOf
) -> Answer:
    """What came of a create request, for `venues.outcome.classify`."""
    wire = kept.create
    names = tuple(cls.__name__ for cls in type(error).__mro__) if error is not None else ()
    after_another = any(not each.create for each in kept.wires)
    if wire is None:
        return Answer(sent=False, ours=ours, errors=names, after_another=after_another)
    payload = payload_of(wire)
    row = payload if isinstance(payload, dict) else {}
    code, words = binance.error_of(payload)
    return Answer(
        sent=wire.sent,
        ours=ours,
        status=wire.status,
        whole=isinstance(payload, dict),
        code=code,
        message=words,
        errors=names,
        after_another=after_another,
        venue_order_id=binance.venue_order_id(row),
        returned=OrderName(
            binance.client_order_id(row),
            symbol_of(str(row.get("symbol", ""))),
            str(row.get("side", "")).lower(),
        ),
    )


def read_one(wire: Wire | None, symbol_of: SymbolOf) -> OrderReport | None:
    """The order in a good answer, None where there is none."""
    if not is_ok(wire):
        return None
    try:
        return binance.read_order(payload_of(wire), symbol_of)
    except MALFORMED:
        return None


def read_look(rung: Rung, wire: Wire | None, symbol_of: SymbolOf) -> Found | None:
    """All rows of the answer; None where it is no answer, or any row of it cannot be read."""
    if rung in (Rung.CLIENT_ID, Rung.VENUE_ID):
        if _no_such_order(wire):
            return (), ()
        report = read_one(wire, symbol_of)
        return None if report is None else ((report,), ())
    rows = payload_of(wire)
    if not is_ok(wire) or not isinstance(rows, list):
        return None
    try:
        if rung is Rung.TRADES:
            return (), tuple(binance.read_trade(row, symbol_of) for row in rows)
        return tuple(binance.read_order(row, symbol_of) for row in rows), ()
    except MALFORMED:
        return None


def _no_such_order(wire: Wire | None) -> bool:
    """The venue's definite word; the same code inside a 5xx is none."""
    if wire is None or wire.status != 400:
        return False
    return binance.error_of(payload_of(wire))[0] == binance.NO_SUCH_ORDER
