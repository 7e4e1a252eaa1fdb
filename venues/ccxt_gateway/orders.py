"""From our order to the arguments of ccxt, and what is refused before that."""

from __future__ import annotations

import decimal
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from venues.gateway import MarketInfo, OrderSpec, Permit
from venues.profiles import Profile

# Further parameters that an order may carry, per exchange: those that change neither what is
# ordered, nor its name, nor where the request goes. Spot REST API, "New order".
EXTRA_PARAMS: Mapping[str, frozenset[str]] = {
    "binance": frozenset({"selfTradePreventionMode", "strategyId", "strategyType"})
}


EXACT_DIGITS = 120  # more than a quantity in steps can have


class OrderRefusedError(ValueError):
    """An order that is not sent, because a field of it is wrong for this venue."""


def plain(number: Decimal) -> str:
    """Exact, in plain notation: never 1E-7."""
    return format(number, "f")


def check(order: OrderSpec, market: MarketInfo, exchange: str) -> None:
    """Refuse what the venue cannot do, or what ccxt would change. Raises OrderRefusedError."""
    if order.side not in ("buy", "sell"):
        raise OrderRefusedError(f"side: is buy or sell, not {order.side!r}")
    if order.type not in ("market", "limit"):
        raise OrderRefusedError(f"type: is market or limit, not {order.type!r}")
    _check_number("quantity", order.quantity, market.quantity_step, "quantity step")
    if order.type == "limit":
        if order.price is None:
            raise OrderRefusedError("price: a limit order needs one")
        _check_number("price", order.price, market.price_tick, "price tick")
    elif order.price is not None:
        raise OrderRefusedError("price: a market order takes none; leave it out, or use type limit")
    _check_features(order)
    _check_params(order.params, EXTRA_PARAMS.get(exchange, frozenset()))


def _check_number(name: str, number: Decimal, step: Decimal | None, word: str) -> None:
    """ccxt rounds without a word, so that another amount than the decided one would be sent."""
    if not number.is_finite() or number <= 0:
        raise OrderRefusedError(f"{name}: must be above zero, not {number}")
    with decimal.localcontext(prec=EXACT_DIGITS):
        fits = step is None or (number.adjusted() < EXACT_DIGITS // 2 and number % step == 0)
    if step is not None and not fits:
        raise OrderRefusedError(
            f"{name}: {plain(number)} is no multiple of the market's {word} {plain(step)}"
        )


def _check_features(order: OrderSpec) -> None:
    if order.stop_price is not None:
        raise OrderRefusedError("stop_price: conditional orders are not supported; leave it out")
    if order.reduce_only:
        raise OrderRefusedError("reduce_only: is for derivatives; this market is spot")
    if order.time_in_force not in (None, "GTC", "IOC", "FOK"):
        raise OrderRefusedError(f"time_in_force: GTC, IOC or FOK, not {order.time_in_force!r}")
    if order.time_in_force is not None and order.type == "market":
        raise OrderRefusedError("time_in_force: a market order takes none; leave it out")
    if order.post_only and (order.type == "market" or order.time_in_force in ("IOC", "FOK")):
        raise OrderRefusedError("post_only: is for limit orders that may rest (GTC)")


def _check_params(params: Mapping[str, Any], allowed: frozenset[str]) -> None:
    for name, value in params.items():
        if name not in allowed:
            known = ", ".join(sorted(allowed)) or "none"
            raise OrderRefusedError(f"params.{name}: is not passed on; possible: {known}")
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise OrderRefusedError(f"params.{name}: must be text or a whole number")


def arguments(order: OrderSpec, permit: Permit, profile: Profile) -> dict[str, Any]:
    """The keyword arguments of ccxt's create_order. The order must have passed `check`."""
    params: dict[str, Any] = {**order.params, "clientOrderId": permit.client_order_id}
    if order.post_only:
        params["postOnly"] = True
    elif order.time_in_force is not None:
        params["timeInForce"] = order.time_in_force
    if profile.expiry:
        params |= _expiry(permit, profile)
    return {
        "symbol": order.symbol,
        "type": order.type,
        "side": order.side,
        "amount": plain(order.quantity),
        "price": None if order.price is None else plain(order.price),
        "params": params,
    }


def _expiry(permit: Permit, profile: Profile) -> dict[str, int]:
    """When the venue must refuse it: counted from the claim, not from the send."""
    window_ms = permit.expires_venue_ms - permit.claimed_venue_ms
    if not 0 < window_ms <= profile.max_expiry_ms:
        raise OrderRefusedError(
            f"request_expiry_ms: {window_ms} ms; {profile.exchange} takes 1 to "
            f"{profile.max_expiry_ms} ms"
        )
    return {"timestamp": permit.claimed_venue_ms, "recvWindow": window_ms}
