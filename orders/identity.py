"""Decision -> key -> client order ID. Pure and stable for ever: a change here breaks every replay.

A decision is named in one of two ways: by its account, strategy and a key that the caller chose,
or by account, strategy, symbol, side and the instant it was decided. Either is digested, together
with the desk's own prefix, and the digest is written in the form that the venue takes.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

from venues.profiles import IdFormat

PREFIX_LENGTH = 4
_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"  # base 32: five bits a character
_ALNUM_DIGITS = 14  # 70 bits: a billion decisions collide with a chance of 4 in 10,000


def _digest(*parts: str) -> str:
    """SHA-256 over length-prefixed parts, so that no two different tuples read alike."""
    body = b"".join(
        len(encoded).to_bytes(4, "big") + encoded
        for encoded in (part.encode("utf-8") for part in parts)
    )
    return hashlib.sha256(body).hexdigest()


def instant(at: datetime) -> str:
    """An aware instant as UTC text with microseconds. Raises ValueError for a naive one."""
    if at.tzinfo is None:
        raise ValueError("decided_at needs a UTC offset, e.g. 2026-01-31T12:00:00Z")
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def decision_key(
    *,
    account: str,
    strategy: str,
    symbol: str,
    side: str,
    decided_at: datetime,
    key: str = "",
) -> str:
    """The 64 hex digits under which a decision is admitted once."""
    if key:
        return _digest("key", account, strategy, key)
    return _digest("decision", account, strategy, symbol, side, instant(decided_at))


def client_order_id(prefix: str, decision: str, form: IdFormat = IdFormat.ALNUM18) -> str:
    """The order's name at the venue: the same for every attempt of one decision.

    `prefix` is the desk's, PREFIX_LENGTH characters that start with a letter; it leads the ID where
    the form has room for text, so that an order without a journal row can be told to be ours.
    """
    number = int(_digest("id", prefix, decision), 16)
    match form:
        case IdFormat.ALNUM18:
            return prefix + _base32(number, _ALNUM_DIGITS)
        case IdFormat.HEX32:
            return f"{number & (1 << 128) - 1:032x}"
        case IdFormat.HEX32_0X:
            return f"0x{number & (1 << 128) - 1:032x}"
        case IdFormat.INT45:
            return str(number % ((1 << 45) - 1) + 1)
        case IdFormat.INT63:
            return str(number % ((1 << 63) - 1) + 1)


def new_prefix(entropy: bytes) -> str:
    """A desk prefix from at least 4 random bytes: opaque, and the first character a letter."""
    if len(entropy) < PREFIX_LENGTH:
        raise ValueError(f"a prefix needs {PREFIX_LENGTH} random bytes, got {len(entropy)}")
    first = _ALPHABET[entropy[0] % 26]
    return first + "".join(_ALPHABET[byte % 32] for byte in entropy[1:PREFIX_LENGTH])


def _base32(number: int, digits: int) -> str:
    text = ""
    for _ in range(digits):
        number, digit = divmod(number, 32)
        text += _ALPHABET[digit]
    return text
