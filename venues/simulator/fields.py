"""Readers of JSON input: each returns a typed value or raises FieldError, naming the field."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

Reader = Callable[[Any, str], Any]


class FieldError(ValueError):
    """Bad input. The message names the field and says what it must be."""


def number(value: Any, where: str) -> float:
    """A number of at least 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise FieldError(f"{where}: must be a number, not {value!r}")
    if value < 0:
        raise FieldError(f"{where}: must be at least 0, not {value!r}")
    return float(value)


def signed(value: Any, where: str) -> float:
    """A number of either sign."""
    magnitude = -value if isinstance(value, int | float) and value < 0 else value
    number(magnitude, where)
    return float(value)


def fraction(value: Any, where: str) -> float:
    """A number from 0 to 1."""
    if number(value, where) > 1:
        raise FieldError(f"{where}: must be between 0 and 1, not {value!r}")
    return float(value)


def count(value: Any, where: str) -> int:
    """A whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise FieldError(f"{where}: must be a whole number of at least 1, not {value!r}")
    return value


def count_or_null(value: Any, where: str) -> int | None:
    """A whole number of at least 1, or null for no bound."""
    return None if value is None else count(value, where)


def whole(value: Any, where: str) -> int:
    """A whole number of either sign."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise FieldError(f"{where}: must be a whole number, not {value!r}")
    return value


def size(value: Any, where: str) -> int:
    """A whole number of at least 0."""
    if whole(value, where) < 0:
        raise FieldError(f"{where}: must be at least 0, not {value!r}")
    return int(value)


def status(value: Any, where: str) -> int:
    """An HTTP status from 200 to 599 (a number below is no answer at all)."""
    if not 200 <= whole(value, where) <= 599:
        raise FieldError(f"{where}: must be an HTTP status from 200 to 599, not {value!r}")
    return int(value)


def flag(value: Any, where: str) -> bool:
    """true or false."""
    if not isinstance(value, bool):
        raise FieldError(f"{where}: must be true or false, not {value!r}")
    return value


def yes(value: Any, where: str) -> bool:
    """true; to leave it out is the other choice."""
    if value is not True:
        raise FieldError(f"{where}: must be true (leave it out otherwise), not {value!r}")
    return True


def string(value: Any, where: str) -> str:
    """A text that is not empty."""
    if not isinstance(value, str) or not value:
        raise FieldError(f"{where}: must be a text that is not empty, not {value!r}")
    return value


def symbol(value: Any, where: str) -> str:
    """A venue symbol such as BTCUSDT; BTC/USDT is read as the same."""
    return string(value, where).replace("/", "").upper()


def amount(value: Any, where: str) -> Decimal:
    """Money or a quantity above 0: a decimal number as a text."""
    if not isinstance(value, str):
        raise FieldError(f'{where}: must be a decimal number as a text, such as "0.5"')
    try:
        result = Decimal(value)
    except InvalidOperation:
        raise FieldError(f"{where}: must be a decimal number, not {value!r}") from None
    if not result.is_finite() or result <= 0:
        raise FieldError(f"{where}: must be above 0, not {value!r}")
    return result


def anything(value: Any, where: str) -> Any:
    """Any JSON value."""
    return value


def headers(value: Any, where: str) -> dict[str, str]:
    """An object of texts."""
    if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
        raise FieldError(f"{where}: must be an object of texts, not {value!r}")
    return value


def one_of(*choices: str) -> Reader:
    """A reader for one of these words."""

    def read(value: Any, where: str) -> str:
        if value not in choices:
            raise FieldError(f"{where}: must be one of {', '.join(choices)}, not {value!r}")
        return str(value)

    return read


def some_of(*choices: str) -> Reader:
    """A reader for a list, not empty, of these words."""
    read_one = one_of(*choices)

    def read(value: Any, where: str) -> frozenset[str]:
        if not isinstance(value, list) or not value:
            raise FieldError(f"{where}: must be a list of {', '.join(choices)}, not {value!r}")
        return frozenset(read_one(item, f"{where}[{i}]") for i, item in enumerate(value))

    return read


def record(
    known: Mapping[str, Reader], *, required: tuple[str, ...] = (), bare: bool = False
) -> Reader:
    """A reader for an object with these keys alone. With `bare`, true stands for {}."""

    def read(value: Any, where: str) -> dict[str, Any]:
        if bare and value is True:
            value = {}
        if not isinstance(value, dict):
            also = "true or " if bare else ""
            raise FieldError(f"{where}: must be {also}an object, not {value!r}")
        for key in value:
            if key not in known:
                raise FieldError(f"{where}.{key}: unknown; known here: {', '.join(known)}")
        for key in required:
            if key not in value:
                raise FieldError(f"{where}.{key}: is missing")
        return {key: known[key](item, f"{where}.{key}") for key, item in value.items()}

    return read
