"""Orders, executions and the account in binance's JSON."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from venues.simulator.balances import Balances
from venues.simulator.markets import Market
from venues.simulator.orders import ZERO, Execution, Order


def money(amount: Decimal | None) -> str:
    """Eight places, as binance writes every amount."""
    return f"{ZERO if amount is None else amount:.8f}"


def ack(order: Order, at_ms: int) -> dict[str, Any]:
    """The answer to a create with newOrderRespType ACK."""
    return {
        "symbol": order.symbol,
        "orderId": order.order_id,
        "orderListId": -1,
        "clientOrderId": order.client_order_id,
        "transactTime": at_ms,
    }


def result(order: Order, at_ms: int) -> dict[str, Any]:
    """The answer to a create with newOrderRespType RESULT."""
    return ack(order, at_ms) | {
        "price": money(order.price),
        "origQty": money(order.quantity),
        "executedQty": money(order.executed),
        "origQuoteOrderQty": money(None),
        "cummulativeQuoteQty": money(order.quote_spent),  # binance's spelling
        "status": order.status.value,
        "timeInForce": order.time_in_force,
        "type": order.type,
        "side": order.side,
        "workingTime": order.created_ms,
        "selfTradePreventionMode": "NONE",
    }


def full(order: Order, at_ms: int) -> dict[str, Any]:
    """The answer to a create with newOrderRespType FULL."""
    fills = [
        {
            "price": money(execution.price),
            "qty": money(execution.quantity),
            "commission": money(execution.commission),
            "commissionAsset": execution.commission_asset,
            "tradeId": execution.trade_id,
        }
        for execution in order.executions
    ]
    return result(order, at_ms) | {"fills": fills}


CREATE_ANSWERS = {"ACK": ack, "RESULT": result, "FULL": full}


def query(order: Order) -> dict[str, Any]:
    """An order as the look-ups show it."""
    return {
        "symbol": order.symbol,
        "orderId": order.order_id,
        "orderListId": -1,
        "clientOrderId": order.client_order_id,
        "price": money(order.price),
        "origQty": money(order.quantity),
        "executedQty": money(order.executed),
        "cummulativeQuoteQty": money(order.quote_spent),
        "status": order.status.value,
        "timeInForce": order.time_in_force,
        "type": order.type,
        "side": order.side,
        "stopPrice": money(None),
        "icebergQty": money(None),
        "time": order.created_ms,
        "updateTime": order.updated_ms,
        "isWorking": True,
        "workingTime": order.created_ms,
        "origQuoteOrderQty": money(None),
        "selfTradePreventionMode": "NONE",
    }


def canceled(order: Order, cancel_id: str) -> dict[str, Any]:
    """The answer to a cancel: clientOrderId is the cancel's own, the order's is the orig one."""
    answer = result(order, order.updated_ms)
    del answer["workingTime"]
    return answer | {"origClientOrderId": order.client_order_id, "clientOrderId": cancel_id}


def trade(execution: Execution) -> dict[str, Any]:
    """One row of myTrades."""
    buys = execution.side == "BUY"
    return {
        "symbol": execution.symbol,
        "id": execution.trade_id,
        "orderId": execution.order_id,
        "orderListId": -1,
        "price": money(execution.price),
        "qty": money(execution.quantity),
        "quoteQty": money(execution.price * execution.quantity),
        "commission": money(execution.commission),
        "commissionAsset": execution.commission_asset,
        "time": execution.at_ms,
        "isBuyer": buys,
        "isMaker": execution.maker,
        "isBestMatch": True,
    }


def account(balances: Balances, at_ms: int, commission: Decimal) -> dict[str, Any]:
    """The account and its balances."""
    rate = money(commission)
    none = money(None)
    return {
        "makerCommission": 10,
        "takerCommission": 10,
        "buyerCommission": 0,
        "sellerCommission": 0,
        "commissionRates": {"maker": rate, "taker": rate, "buyer": none, "seller": none},
        "canTrade": True,
        "canWithdraw": False,
        "canDeposit": False,
        "brokered": False,
        "requireSelfTradePrevention": False,
        "preventSor": False,
        "updateTime": at_ms,
        "accountType": "SPOT",
        "balances": [
            {"asset": asset, "free": money(free), "locked": money(balances.locked[asset])}
            for asset, free in balances.free.items()
        ],
        "permissions": ["SPOT"],
        "uid": 1,
    }


def symbol_info(market: Market) -> dict[str, Any]:
    """One symbol of exchangeInfo."""
    return {
        "symbol": market.symbol,
        "status": "TRADING",
        "baseAsset": market.base,
        "baseAssetPrecision": 8,
        "quoteAsset": market.quote,
        "quotePrecision": 8,
        "quoteAssetPrecision": 8,
        "baseCommissionPrecision": 8,
        "quoteCommissionPrecision": 8,
        "orderTypes": ["LIMIT", "LIMIT_MAKER", "MARKET"],
        "icebergAllowed": False,
        "ocoAllowed": False,
        "otoAllowed": False,
        "quoteOrderQtyMarketAllowed": True,
        "allowTrailingStop": False,
        "cancelReplaceAllowed": False,
        "amendAllowed": False,
        "isSpotTradingAllowed": True,
        "isMarginTradingAllowed": False,
        "filters": _filters(market),
        "permissions": [],
        "permissionSets": [["SPOT"]],
        "defaultSelfTradePreventionMode": "NONE",
        "allowedSelfTradePreventionModes": ["NONE"],
    }


def _filters(market: Market) -> list[dict[str, Any]]:
    return [
        {
            "filterType": "PRICE_FILTER",
            "minPrice": money(market.tick),
            "maxPrice": money(market.max_price),
            "tickSize": money(market.tick),
        },
        {
            "filterType": "LOT_SIZE",
            "minQty": money(market.step),
            "maxQty": money(market.max_quantity),
            "stepSize": money(market.step),
        },
        {
            "filterType": "NOTIONAL",
            "minNotional": money(market.min_notional),
            "applyMinToMarket": True,
            "maxNotional": money(market.max_notional),
            "applyMaxToMarket": True,
            "avgPriceMins": 0,
        },
    ]


RATE_LIMITS = [
    {"rateLimitType": "REQUEST_WEIGHT", "interval": "MINUTE", "intervalNum": 1, "limit": 6000},
    {"rateLimitType": "ORDERS", "interval": "SECOND", "intervalNum": 10, "limit": 100},
    {"rateLimitType": "ORDERS", "interval": "DAY", "intervalNum": 1, "limit": 200000},
    {"rateLimitType": "RAW_REQUESTS", "interval": "MINUTE", "intervalNum": 5, "limit": 61000},
]
