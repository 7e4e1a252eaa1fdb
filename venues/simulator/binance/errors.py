"""Binance's error codes and words. Source: its spot API docs, "Error codes" and "Filters"."""

from __future__ import annotations

from venues.simulator.orders import Reason


class ApiError(Exception):
    """A request that binance refuses."""

    def __init__(self, code: int, message: str, status: int = 400) -> None:
        super().__init__(f"{code} {message}")
        self.code = code
        self.message = message
        self.status = status


REFUSALS: dict[Reason, tuple[int, str]] = {
    Reason.UNKNOWN_SYMBOL: (-1121, "Invalid symbol."),
    Reason.PRICE_FILTER: (-1013, "Filter failure: PRICE_FILTER"),
    Reason.LOT_SIZE: (-1013, "Filter failure: LOT_SIZE"),
    Reason.NOTIONAL: (-1013, "Filter failure: NOTIONAL"),
    Reason.INSUFFICIENT_BALANCE: (
        -2010,
        "Account has insufficient balance for requested action.",
    ),
    Reason.DUPLICATE_ID: (-2010, "Duplicate order sent."),
    Reason.WOULD_MATCH: (-2010, "Order would immediately match and take."),
}

# The "r" of an executionReport whose "x" is REJECTED.
REJECT_WORDS: dict[Reason, str] = {
    Reason.INSUFFICIENT_BALANCE: "INSUFFICIENT_BALANCES",
    Reason.WOULD_MATCH: "WOULD_MATCH_IMMEDIATELY",
}


def refusal(reason: Reason) -> ApiError:
    """The engine's refusal in binance's words."""
    return ApiError(*REFUSALS[reason])


def missing(name: str) -> ApiError:
    """A parameter that was not sent, or sent empty or malformed."""
    return ApiError(
        -1102,
        f"Mandatory parameter '{name}' was not sent, was empty/null, or malformed.",
    )
