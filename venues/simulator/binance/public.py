"""Binance's endpoints that need no key: time, rules and prices."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from venues.simulator.binance.errors import ApiError, missing
from venues.simulator.binance.shapes import RATE_LIMITS, money, symbol_info
from venues.simulator.exchange import LEVELS, Exchange

DAY_MS = 86_400_000

Params = Mapping[str, str]


def ping(exchange: Exchange, params: Params) -> Any:
    return {}


def server_time(exchange: Exchange, params: Params) -> Any:
    return {"serverTime": exchange.clock.now_ms()}


def exchange_info(exchange: Exchange, params: Params) -> Any:
    symbols = _symbols(params) or list(exchange.markets)
    return {
        "timezone": "UTC",
        "serverTime": exchange.clock.now_ms(),
        "rateLimits": RATE_LIMITS,
        "exchangeFilters": [],
        "symbols": [symbol_info(exchange.market(symbol)) for symbol in symbols],
    }


def ticker_price(exchange: Exchange, params: Params) -> Any:
    return _each(exchange, params, _price)


def ticker_book(exchange: Exchange, params: Params) -> Any:
    return _each(exchange, params, _book)


def ticker_day(exchange: Exchange, params: Params) -> Any:
    return _each(exchange, params, _day)


def depth(exchange: Exchange, params: Params) -> Any:
    """The levels that a market order would meet. Bid and ask meet at the last price."""
    if "symbol" not in params:
        raise missing("symbol")
    market = exchange.market(params["symbol"])
    last = exchange.quotes[market.symbol].last
    quantity = money(market.level_quantity)
    bids = [last - market.tick * level for level in range(LEVELS)]
    return {
        "lastUpdateId": exchange.clock.now_ms(),
        "bids": [[money(price), quantity] for price in bids if price > 0],
        "asks": [[money(last + market.tick * level), quantity] for level in range(LEVELS)],
    }


def no_futures(exchange: Exchange, params: Params) -> Any:
    """The futures' exchangeInfo, which ccxt loads too: there are no such markets here."""
    return {"timezone": "UTC", "serverTime": exchange.clock.now_ms(), "symbols": []}


def _symbols(params: Params) -> list[str]:
    if "symbol" in params:
        return [params["symbol"]]
    if "symbols" not in params:
        return []
    try:
        symbols = json.loads(params["symbols"])
    except ValueError:
        symbols = None
    if not isinstance(symbols, list):
        raise ApiError(-1100, "Illegal characters found in parameter 'symbols'.")
    return [str(symbol) for symbol in symbols]


def _each(exchange: Exchange, params: Params, show: Callable[[Exchange, str], Any]) -> Any:
    if "symbol" in params:
        exchange.market(params["symbol"])
        return show(exchange, params["symbol"])
    symbols = _symbols(params) or list(exchange.markets)
    return [show(exchange, exchange.market(symbol).symbol) for symbol in symbols]


def _price(exchange: Exchange, symbol: str) -> dict[str, Any]:
    return {"symbol": symbol, "price": money(exchange.quotes[symbol].last)}


def _book(exchange: Exchange, symbol: str) -> dict[str, Any]:
    last = money(exchange.quotes[symbol].last)
    quantity = money(exchange.market(symbol).level_quantity)
    return {
        "symbol": symbol,
        "bidPrice": last,
        "bidQty": quantity,
        "askPrice": last,
        "askQty": quantity,
    }


def _day(exchange: Exchange, symbol: str) -> dict[str, Any]:
    quote = exchange.quotes[symbol]
    now_ms = exchange.clock.now_ms()
    average = quote.quote_volume / quote.volume if quote.volume else quote.last
    change = quote.last - quote.open
    return _book(exchange, symbol) | {
        "priceChange": money(change),
        "priceChangePercent": f"{change / quote.open * 100:.3f}",
        "weightedAvgPrice": money(average),
        "prevClosePrice": money(quote.open),
        "lastPrice": money(quote.last),
        "lastQty": money(None),
        "openPrice": money(quote.open),
        "highPrice": money(quote.high),
        "lowPrice": money(quote.low),
        "volume": money(quote.volume),
        "quoteVolume": money(quote.quote_volume),
        "openTime": now_ms - DAY_MS,
        "closeTime": now_ms,
        "firstId": -1,
        "lastId": -1,
        "count": quote.trades,
    }


PUBLIC: dict[str, Callable[[Exchange, Params], Any]] = {
    "/api/v3/ping": ping,
    "/api/v3/time": server_time,
    "/api/v3/exchangeInfo": exchange_info,
    "/api/v3/ticker/price": ticker_price,
    "/api/v3/ticker/bookTicker": ticker_book,
    "/api/v3/ticker/24hr": ticker_day,
    "/api/v3/depth": depth,
    "/fapi/v1/exchangeInfo": no_futures,
    "/dapi/v1/exchangeInfo": no_futures,
}
