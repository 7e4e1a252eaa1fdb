"""Signed requests without ccxt, to see exactly what goes over the wire and what comes back."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable
from typing import Any, Self
from urllib.parse import urlencode

import requests

from tests.support.simulator import API_KEY, SECRET, Simulator

TIMEOUT_S = 5


class Answer:
    """Status, JSON and headers of one answer."""

    def __init__(self, response: requests.Response) -> None:
        self.status = response.status_code
        self.headers = response.headers
        self.text = response.text
        self.json: Any = response.json() if response.text[:1] in ("{", "[") else None

    @property
    def code(self) -> int | None:
        return self.json.get("code") if isinstance(self.json, dict) else None


class Wire:
    """One keep-alive connection that follows no redirect and repeats nothing."""

    def __init__(self, sim: Simulator) -> None:
        self._url = sim.url
        self._session = requests.Session()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._session.close()

    def signed(
        self,
        method: str,
        path: str,
        *,
        secret: str = SECRET,
        key: str | None = API_KEY,
        redirects: bool = False,
        timeout_s: float = TIMEOUT_S,
        **params: Any,
    ) -> Answer:
        params.setdefault("timestamp", int(time.time() * 1000))
        query = urlencode({name: value for name, value in params.items() if value is not None})
        query += (
            "&signature=" + hmac.new(secret.encode(), query.encode(), hashlib.sha256).hexdigest()
        )
        headers = {"X-MBX-APIKEY": key} if key is not None else {}
        url, data = f"{self._url}{path}", None
        if method == "POST":
            data = query
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        else:
            url += f"?{query}"
        response = self._session.request(
            method, url, data=data, headers=headers, timeout=timeout_s, allow_redirects=redirects
        )
        return Answer(response)

    def public(self, path: str) -> Answer:
        return Answer(self._session.get(f"{self._url}{path}", timeout=TIMEOUT_S))

    def create(self, symbol: str, client_id: str | None = None, **params: Any) -> Answer:
        """A market order to buy 1, unless told otherwise."""
        order: dict[str, Any] = {"side": "BUY", "type": "MARKET", "quantity": "1"}
        order |= {"symbol": symbol, "newClientOrderId": client_id, **params}
        return self.signed("POST", "/api/v3/order", **order)

    def limit(self, symbol: str, client_id: str | None = None, **params: Any) -> Answer:
        """A limit order to buy 1 at 90, which rests."""
        order = {"type": "LIMIT", "timeInForce": "GTC", "price": "90", **params}
        return self.create(symbol, client_id, **order)

    def query(self, symbol: str, client_id: str) -> Answer:
        return self.signed("GET", "/api/v3/order", symbol=symbol, origClientOrderId=client_id)

    def cancel(self, symbol: str, client_id: str) -> Answer:
        return self.signed("DELETE", "/api/v3/order", symbol=symbol, origClientOrderId=client_id)

    def open_orders(self, symbol: str) -> list[str]:
        rows = self.signed("GET", "/api/v3/openOrders", symbol=symbol).json
        return [row["clientOrderId"] for row in rows]

    def all_orders(self, symbol: str, **params: Any) -> list[str]:
        rows = self.signed("GET", "/api/v3/allOrders", symbol=symbol, **params).json
        return [row["clientOrderId"] for row in rows]

    def trades(self, symbol: str, **params: Any) -> list[dict[str, Any]]:
        return list(self.signed("GET", "/api/v3/myTrades", symbol=symbol, **params).json)

    def balance(self, asset: str) -> tuple[str, str]:
        """free, locked"""
        rows = self.signed("GET", "/api/v3/account").json["balances"]
        [row] = [row for row in rows if row["asset"] == asset]
        return row["free"], row["locked"]


def outcomes(sim: Simulator, client_id: str) -> list[str]:
    """What became of each create request with this ID."""
    return [r["outcome"] for r in sim.ledger(client_order_id=client_id)["requests"]]


def placed(sim: Simulator, client_id: str) -> int:
    """How many orders have this ID."""
    return len(sim.ledger(client_order_id=client_id)["orders"])


def wait_until(true: Callable[[], Any], what: str, for_s: float = 5.0) -> None:
    """Ask again until it is true; asking takes a round trip each."""
    end = time.monotonic() + for_s
    while not true():
        assert time.monotonic() < end, f"{what} did not happen within {for_s} s"
