"""The journal in order, without skipping a row that commits late.

Numbers are given out before the commit, so on PostgreSQL row 7 may appear after row 8. A missing
number is asked for again until it appears, or until it is older than any transaction may be.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import timedelta

from django.db import connection
from django.db.models import Max, Q, QuerySet

from orders.clock import SYSTEM
from orders.models import Transition

LONGEST_TRANSACTION_S = 30.0
PAGE = 1000
WIDEST_GAP = 1000  # more numbers than this are never open at once


def position() -> int:
    """The highest number in the journal; 0 for an empty one."""
    return Transition.objects.aggregate(top=Max("pk"))["top"] or 0


@dataclass
class Tail:
    """Follows the journal from `after` on, for one reader in one process."""

    after: int
    _gaps: dict[int, float] = field(default_factory=dict)  # number -> when it was missed first

    def read(self) -> list[Transition]:
        """Up to PAGE new rows, by number; late ones come when they come."""
        rows = list(
            _rows().filter(Q(pk__gt=self.after) | Q(pk__in=list(self._gaps))).order_by("pk")[:PAGE]
        )
        now = time.monotonic()
        for row in rows:
            self._gaps.pop(row.pk, None)
            if row.pk > self.after:
                # A wider jump is no late commit: the numbers were archived, or never given out.
                missing = range(max(self.after + 1, row.pk - WIDEST_GAP), row.pk)
                self._gaps.update(dict.fromkeys(missing, now))
                self.after = row.pk
        for number in [n for n, since in self._gaps.items() if now - since > LONGEST_TRANSACTION_S]:
            del self._gaps[number]
        return rows

    @property
    def waits(self) -> bool:
        """Whether a late row may still come: read again soon, even without a wake-up."""
        return bool(self._gaps)


def page(after: int, limit: int) -> list[Transition]:
    """Rows after a number, in order, up to the first number that may still appear."""
    rows = list(_rows().filter(pk__gt=after).order_by("pk")[:limit])
    if connection.vendor == "sqlite":  # one writer at a time: numbers commit in order
        return rows
    settled = SYSTEM.now() - timedelta(seconds=LONGEST_TRANSACTION_S)
    for place, row in enumerate(rows):
        expected = after + 1 if place == 0 else rows[place - 1].pk + 1
        if row.pk != expected and row.at > settled:
            return rows[:place]
    return rows


def _rows() -> QuerySet[Transition]:
    return Transition.objects.select_related("account", "market", "intent", "alert")
