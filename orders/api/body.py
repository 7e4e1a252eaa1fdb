"""Reads JSON without losing anything: exact numbers, no name twice, nothing unknown."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from django.http import HttpRequest

from orders.api.problems import ProblemError, invalid


def read(request: HttpRequest) -> Any:
    """The body's JSON. A number with a fraction or exponent becomes the Decimal that was written.

    Raises ProblemError: 400 for a body that is not JSON, 422 for a name that is given twice.
    """
    try:
        return json.loads(
            request.body.decode("utf-8"),
            parse_float=Decimal,
            parse_constant=_no_constant,
            object_pairs_hook=_once,
        )
    except UnicodeDecodeError:
        raise ProblemError(400, "malformed", "the body is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise ProblemError(
            400, "malformed", f"the body is not JSON: {error.msg} at character {error.pos}"
        ) from None
    except (ValueError, ArithmeticError):  # e.g. a number of a million digits
        raise ProblemError(400, "malformed", "the body holds an unreadable number") from None
    except RecursionError:
        raise ProblemError(400, "malformed", "the body is nested too deeply") from None


def _no_constant(name: str) -> Any:
    raise ProblemError(400, "malformed", f"the body holds {name}, which is not JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            raise invalid(name, "is given twice; which one counts?")
        members[name] = value
    return members


def storable(value: str) -> bool:
    """Whether both databases can keep it: no NUL, no half of a character."""
    return "\0" not in value and not any("\ud800" <= char <= "\udfff" for char in value)
