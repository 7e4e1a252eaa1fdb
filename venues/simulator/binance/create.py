"""Reads a create request: which parameters it must have, and which it may not have."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation

from venues.simulator.binance.errors import ApiError, missing
from venues.simulator.exchange import Exchange
from venues.simulator.orders import Ticket

CLIENT_ID = re.compile(r"[a-zA-Z0-9-_]{1,36}")
NUMBER = re.compile(r"[0-9]{1,20}(\.[0-9]{1,20})?")
TYPES = frozenset({"MARKET", "LIMIT", "LIMIT_MAKER"})
SIDES = frozenset({"BUY", "SELL"})
TIMES_IN_FORCE = frozenset({"GTC", "IOC", "FOK"})
ANSWER_TYPES = frozenset({"ACK", "RESULT", "FULL"})

Params = Mapping[str, str]


def ticket_of(params: Params, exchange: Exchange) -> Ticket:
    """The order that the parameters describe. Raises ApiError."""
    market = exchange.market(required(params, "symbol"))
    side = _word(params, "side", SIDES, -1117, "Invalid side.")
    order_type = _word(params, "type", TYPES, -1116, "Invalid orderType.")
    time_in_force = "GTC"
    price = None
    if order_type == "LIMIT":
        time_in_force = _word(params, "timeInForce", TIMES_IN_FORCE, -1115, "Invalid timeInForce.")
    elif "timeInForce" in params:
        raise _not_required("timeInForce")
    if order_type != "MARKET":
        price = decimal(params, "price")
    elif "price" in params:
        raise _not_required("price")
    if order_type == "MARKET" and "quoteOrderQty" in params and "quantity" not in params:
        spend = decimal(params, "quoteOrderQty")
        quantity = market.round_quantity(spend / exchange.quotes[market.symbol].last)
    else:
        quantity = decimal(params, "quantity")
    return Ticket(
        symbol=market.symbol,
        side=side,
        type=order_type,
        quantity=quantity,
        price=price,
        time_in_force=time_in_force,
        client_order_id=client_id(params, "newClientOrderId"),
    )


def answer_type(params: Params) -> str:
    """ACK, RESULT or FULL; the types that exist here all have FULL as default."""
    if "newOrderRespType" not in params:
        return "FULL"
    return _word(params, "newOrderRespType", ANSWER_TYPES, -1137, "Invalid newOrderRespType.")


def required(params: Params, name: str) -> str:
    """A parameter that must be there and not be empty."""
    value = params.get(name)
    if not value:
        raise missing(name)
    return value


def client_id(params: Params, name: str) -> str:
    """A client order ID, "" for none. An empty one is refused like any illegal one."""
    value = params.get(name)
    if value is None:
        return ""
    if not CLIENT_ID.fullmatch(value):
        raise ApiError(
            -1100,
            f"Illegal characters found in parameter '{name}'; "
            "legal range is '^[a-zA-Z0-9-_]{1,36}$'.",
        )
    return value


def decimal(params: Params, name: str) -> Decimal:
    """An amount in plain decimal notation."""
    value = required(params, name)
    if not NUMBER.fullmatch(value):
        raise ApiError(
            -1100,
            f"Illegal characters found in parameter '{name}'; "
            "legal range is '^([0-9]{1,20})(\\.[0-9]{1,20})?$'.",
        )
    try:
        return Decimal(value)
    except InvalidOperation:
        raise missing(name) from None


def whole(params: Params, name: str, default: int | None = None) -> int | None:
    """A whole number, the default where it was not sent."""
    if name not in params:
        return default
    value = params[name]
    if not value.isascii() or not value.isdigit() or len(value) > 19:
        raise ApiError(
            -1100,
            f"Illegal characters found in parameter '{name}'; legal range is '^[0-9]{{1,20}}$'.",
        )
    return int(value)


def _word(params: Params, name: str, known: frozenset[str], code: int, words: str) -> str:
    value = required(params, name)
    if value not in known:
        raise ApiError(code, words)
    return value


def _not_required(name: str) -> ApiError:
    return ApiError(-1106, f"Parameter '{name}' sent when not required.")
