"""A server that says exactly what a test wants, byte by byte, and keeps what it was told.

A script is a list of turns; each request to the scripted path takes the next, the last one stays.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

FILTERS = [
    {"filterType": "PRICE_FILTER", "minPrice": "0.01", "maxPrice": "1000000", "tickSize": "0.01"},
    {"filterType": "LOT_SIZE", "minQty": "0.00001", "maxQty": "9000", "stepSize": "0.00001"},
    {"filterType": "NOTIONAL", "minNotional": "5"},
]
MARKET = {
    "symbol": "BTCUSDT",
    "status": "TRADING",
    "baseAsset": "BTC",
    "quoteAsset": "USDT",
    "baseAssetPrecision": 8,
    "quotePrecision": 8,
    "orderTypes": ["LIMIT", "LIMIT_MAKER", "MARKET"],
    "isSpotTradingAllowed": True,
    "permissions": [],
    "permissionSets": [["SPOT"]],
    "filters": FILTERS,
}


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    target: str
    headers: dict[str, str]
    body: str
    connection: int

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def params(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.target).query) + parse_qsl(self.body))


Turn = Callable[[Request], bytes | None]  # None: close without a word


def answer(
    status: int, body: str | dict[str, Any] | list[Any] = "", *headers: str, keep: bool = True
) -> Turn:
    """A whole answer, JSON where the body is no text."""
    text = body if isinstance(body, str) else json.dumps(body)
    kind = "text/html" if isinstance(body, str) else "application/json"
    lines = [
        f"HTTP/1.1 {status} Some Words",
        f"Content-Type: {kind}",
        f"Content-Length: {len(text.encode())}",
        f"Connection: {'keep-alive' if keep else 'close'}",
        *headers,
    ]
    whole = ("\r\n".join(lines) + "\r\n\r\n" + text).encode()
    return lambda request: whole


def order_answer(**changes: Any) -> Turn:
    """What binance says to a create that rests, our order unless changed; None leaves one out."""

    def turn(request: Request) -> bytes:
        row = {
            "symbol": request.params["symbol"],
            "orderId": 28,
            "clientOrderId": request.params["newClientOrderId"],
            "transactTime": 1_700_000_000_000,
            "price": request.params.get("price", "0"),
            "origQty": request.params["quantity"],
            "executedQty": "0",
            "cummulativeQuoteQty": "0",
            "status": "NEW",
            "side": request.params["side"],
            "fills": [],
        }
        row |= changes
        body = {name: value for name, value in row.items() if value is not None}
        return answer(200, body)(request) or b""

    return turn


def half(turn: Turn) -> Turn:
    """The first half of the answer's body, then the end."""

    def cut(request: Request) -> bytes:
        head, _, body = (turn(request) or b"").partition(b"\r\n\r\n")
        return head + b"\r\n\r\n" + body[: len(body) // 2]

    return cut


HOLD = b"never answered, never closed"


def hold(request: Request) -> bytes:
    """Read the request, and say nothing for as long as the other side stays."""
    return HOLD


def hang_up(request: Request) -> None:
    """Read the request, then close."""


class RawServer:
    """Use as an async context manager. `requests` holds what arrived at any path."""

    def __init__(self, *turns: Turn, path: str = "/api/v3/order") -> None:
        self.turns: Sequence[Turn] = turns or (hang_up,)
        self.path = path
        self.requests: list[Request] = []
        self.connections = 0
        self._taken = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._server.close()

    def at(self, path: str) -> list[Request]:
        return [request for request in self.requests if request.path == path]

    @property
    def creates(self) -> list[Request]:
        return [r for r in self.requests if r.method == "POST" or "newClientOrderId" in r.params]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        try:
            while True:
                request = await _read(reader, number)
                self.requests.append(request)
                said = self._turn(request)(request)
                if said is HOLD:
                    await reader.read()
                    break
                if said is not None:
                    writer.write(said)
                    await writer.drain()
                if said is None or not _is_whole(said) or b"Connection: close" in said:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def _turn(self, request: Request) -> Turn:
        if request.path == "/api/v3/exchangeInfo":
            return answer(200, {"symbols": [MARKET]})
        if request.path == "/api/v3/time":
            return answer(200, {"serverTime": time.time_ns() // 1_000_000})
        if request.path != self.path:
            return answer(404, {"code": -1000, "msg": "no such path"})
        turn = self.turns[min(self._taken, len(self.turns) - 1)]
        self._taken += 1
        return turn


async def _read(reader: asyncio.StreamReader, connection: int) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    first, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    method, target, _ = first.split(" ")
    return Request(method, target, headers, body.decode(), connection)


def _is_whole(said: bytes) -> bool:
    head, _, body = said.partition(b"\r\n\r\n")
    length = next(line for line in head.split(b"\r\n") if line.startswith(b"Content-Length"))
    return len(body) == int(length.split()[1])
