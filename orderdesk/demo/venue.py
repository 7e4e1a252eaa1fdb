"""The demo's venue: where it is, its prices, and the faults that it can be asked for."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

SYMBOLS = ("BTC/USDT", "ETH/USDT", "SOL/USDT")
URL_VARIABLE = "ORDERDESK_DEMO_VENUE"
TIMEOUT_S = 5.0


class VenueError(Exception):
    """The simulator did not do what it was asked for; carries its words."""


@dataclass(frozen=True)
class Fault:
    """What may happen to the next order of a market, or for a while."""

    name: str
    title: str
    story: str  # what the venue does, and what the desk then shows
    action: dict[str, Any]
    match: dict[str, Any]
    gentle: bool = False  # resolves by itself within seconds

    def plan(self, symbol: str) -> dict[str, Any]:
        """The simulator's own form."""
        return {"match": {**self.match, "symbol": symbol}, "action": self.action}


_CREATE = {"path": "create"}


def _unseen(for_s: float) -> dict[str, Any]:
    """Look-ups do not show the order and the stream is silent: only then doubt can be watched.

    Longer than the venue's visibility lag, and the desk would rightly take it for absent.
    """
    return {
        "hide": {"from": ["query", "open_orders", "all_orders", "trades"], "for_s": for_s},
        "stream_silence": {"for_s": for_s},
    }


_UNKNOWN_ERROR = {
    "code": -1000,
    "msg": "Unknown error, please check your request or try again later.",
}

FAULTS: Sequence[Fault] = (
    Fault(
        "lost_answer",
        "Lose the answer",
        "Executes the next order and cuts the connection; for 1.5 seconds nothing shows the order. "
        "It turns UNKNOWN and at once RECONCILING, the market is BLOCKED for about two seconds, "
        "then the order is found and FILLED or LIVE: one order.",
        {"drop_after": True, **_unseen(1.5)},
        _CREATE,
        gentle=True,
    ),
    Fault(
        "dropped_before",
        "Drop the request",
        "Never sees the next order. RECONCILING, the market BLOCKED, for about six seconds: the "
        "request must have expired, and two whole looks must find nothing. Then it is sent again "
        "under the same ID: one order.",
        {"drop_before": True},
        _CREATE,
        gentle=True,
    ),
    Fault(
        "error_503",
        "Answer 503, but execute",
        "Says that the next order failed and executes it all the same; nothing shows the order for "
        "1.5 seconds. UNKNOWN, not REJECTED: the desk looks until it finds it. The answer stands "
        "in the order's journal as evidence.",
        {
            "respond": {"status": 503, "body": _UNKNOWN_ERROR, "execute": True},
            **_unseen(1.5),
        },
        _CREATE,
        gentle=True,
    ),
    Fault(
        "hidden",
        "Hide the order for 4 seconds",
        "Executes the next order, loses the answer, and says for 4 seconds that it does not know "
        "it. Not found is not absent: the order stays RECONCILING and the market BLOCKED for about "
        "six seconds, until a look finds it; what is decided there meanwhile waits.",
        {"drop_after": True, **_unseen(4)},
        _CREATE,
    ),
    Fault(
        "late_trades",
        "List the trades late",
        "Executes the next order and loses the answer; a look finds the order at once, but its "
        "trades are listed only 3 seconds later. A market order stays ACKED for that long: FILLED "
        "waits until the booked fills equal what the venue reports.",
        {
            "drop_after": True,
            "hide": {"from": ["trades"], "for_s": 3},
            "stream_silence": {"for_s": 3},
        },
        _CREATE,
        gentle=True,
    ),
    Fault(
        "refused",
        "Refuse the order",
        "Refuses the next order for lack of balance, by a listed code. REJECTED at once, without a "
        "look and without a retry.",
        {
            "refuse": {
                "code": -2010,
                "msg": "Account has insufficient balance for requested action.",
            }
        },
        _CREATE,
    ),
    Fault(
        "unreachable",
        "Unreachable for a minute",
        "Cuts every request of this market for a minute, beginning now. The next order stays "
        "UNKNOWN, the market BLOCKED. After 30 seconds in doubt the market is HALTED and an alert "
        "raised. When the minute is over the order is found or proven absent; then a person "
        "resumes the market.",
        {"unreachable": True},
        {"for_s": 60},
    ),
)
BY_NAME = {fault.name: fault for fault in FAULTS}


def inject(fault: Fault, symbol: str) -> None:
    """Load a fault for one of SYMBOLS. Raises VenueError."""
    _call("POST", "/_faults", [fault.plan(symbol)])


def clear() -> None:
    """Forget every fault that has not happened yet, and end those that go on."""
    _call("DELETE", "/_faults")


def loaded() -> list[dict[str, Any]]:
    """The plan, each fault with how often it was hit."""
    return list(_call("GET", "/_faults")["faults"])


def price(symbol: str) -> Decimal:
    """The last price, from the venue's public ticker."""
    answer = _call("GET", f"/api/v3/ticker/price?symbol={symbol.replace('/', '')}")
    return Decimal(answer["price"])


def _call(method: str, path: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = Request(os.environ[URL_VARIABLE] + path, data, method=method)  # noqa: S310 - ours
    try:
        with urlopen(request, timeout=TIMEOUT_S) as answer:  # noqa: S310
            return json.load(answer)
    except HTTPError as error:
        raise VenueError(f"{method} {path}: {error.read().decode()}") from error
    except (URLError, OSError, ValueError) as error:
        raise VenueError(f"the simulated venue does not answer: {error}") from error
