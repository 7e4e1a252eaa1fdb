"""Who asks, and when: key, signature, timestamp and recvWindow.

Source: spot REST API docs, "SIGNED (TRADE and USER_DATA) request security": HMAC SHA256 over the
query string followed by the body; a request counts while its timestamp is less than 1 s ahead of
the server and at most recvWindow (5,000 ms by default, 60,000 at most) behind it.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping

from venues.simulator.binance.errors import ApiError, missing
from venues.simulator.clock import Clock

DEFAULT_WINDOW_MS = 5_000.0
MAX_WINDOW_MS = 60_000.0
MAX_AHEAD_MS = 1_000


class Gate:
    """Lets through what is signed and young enough."""

    def __init__(self, clock: Clock, secret: str, keys: frozenset[str]) -> None:
        self._clock = clock
        self._secret = secret.encode()
        self._keys = keys

    def check_key(self, key: str | None) -> None:
        if not key:
            raise ApiError(-2014, "API-key format invalid.", 401)
        if self._keys and key not in self._keys:
            raise ApiError(-2015, "Invalid API-key, IP, or permissions for action.", 401)

    def check_signature(self, payload: str, signature: str | None) -> None:
        if not signature:
            raise missing("signature")
        right = hmac.new(self._secret, payload.encode(), hashlib.sha256).hexdigest()
        if not hmac.compare_digest(right, signature):
            raise ApiError(-1022, "Signature for this request is not valid.")

    def check_age(self, params: Mapping[str, str], *, honour_expiry: bool) -> None:
        """Judged when the request is executed, by the simulator's own clock."""
        timestamp = _number(params, "timestamp")
        window_ms = DEFAULT_WINDOW_MS
        if "recvWindow" in params:
            window_ms = _number(params, "recvWindow")
        if window_ms > MAX_WINDOW_MS:
            raise ApiError(-1131, "recvWindow must be less than 60000.")
        if not honour_expiry:
            return
        now_ms = self._clock.now_ms()
        if timestamp - now_ms >= MAX_AHEAD_MS:
            raise ApiError(
                -1021, "Timestamp for this request was 1000ms ahead of the server's time."
            )
        if now_ms - timestamp > window_ms:
            raise ApiError(-1021, "Timestamp for this request is outside of the recvWindow.")


def _number(params: Mapping[str, str], name: str) -> float:
    try:
        value = float(params[name])
    except (KeyError, ValueError):
        raise missing(name) from None
    if not 0 <= value < 1e15:
        raise missing(name)
    return value
