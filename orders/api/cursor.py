"""Pages by number, newest first. The place is in an opaque cursor, so nothing is counted."""

from __future__ import annotations

import base64
import binascii
from typing import Any, TypeVar

from django.db.models import Model, QuerySet

from orders.api.problems import invalid

MAX_LIMIT = 500
DEFAULT_LIMIT = 100
MAX_ID = 2**63 - 1  # what the databases can hold
_MARK = "before:"

Row = TypeVar("Row", bound=Model)


def take(rows: QuerySet[Row], cursor: str | None, limit: int) -> tuple[list[Row], str | None]:
    """Up to `limit` rows by falling number, and the cursor of what follows; None at the end.

    A row that is added meanwhile moves nothing: each row comes exactly once.
    """
    if cursor:
        rows = rows.filter(pk__lt=decode(cursor))
    found = list(rows.order_by("-pk")[: limit + 1])
    page = found[:limit]
    return page, encode(page[-1].pk) if len(found) > limit else None


def encode(number: Any) -> str:
    return base64.urlsafe_b64encode(f"{_MARK}{number}".encode()).decode().rstrip("=")


def decode(cursor: str) -> int:
    """Raises ProblemError 422 for anything that `encode` did not write."""
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        text = ""
    number = text.removeprefix(_MARK)
    known = text.startswith(_MARK) and number.isascii() and number.isdigit() and len(number) < 20
    if not known or int(number) > MAX_ID:
        raise invalid("cursor", "is not one of ours; take `next` from the page before, unchanged")
    return int(number)
