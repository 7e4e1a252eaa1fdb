"""Intents that ended without all of their execution, while something of them may still arrive."""

from __future__ import annotations

from collections.abc import Sequence

from orders.journal import lease
from orders.journal.lease import Hold
from orders.journal.writing import writing
from orders.models import Intent
from orders.prepared import Prepared

MOST = 1000  # of one account at a time, the longest watched first


def watched(account_id: int) -> list[Intent]:
    return _WATCHED.rows(account_id)


_WATCHED: Prepared[Intent] = Prepared(
    lambda account_id: Intent.objects.filter(
        account_id=account_id, watched_since__isnull=False
    ).order_by("watched_since")[:MOST]
)


def unwatch(hold: Hold, intents: Sequence[Intent]) -> int:
    """Nothing of them can arrive any more; returns for how many that holds.

    One that was reopened since it was read stays as it is. Raises LeaseLostError.
    """
    if not intents:
        return 0
    with writing() as current:
        lease.check(hold)
        current.changed = False  # nobody waits for it
        return sum(
            Intent.objects.filter(pk=intent.pk, version=intent.version).update(watched_since=None)
            for intent in intents
        )
