"""Record what happened to intents: many changes, one transaction, each compared and set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from orders.journal import lease
from orders.journal.batch import LOCKED_MARKETS, Batch, Change
from orders.journal.entries import Stamp
from orders.journal.lease import Hold
from orders.journal.markets import Halt, put_halt
from orders.journal.writing import writing
from orders.machine import State
from orders.models import Intent, Market
from orders.prepared import Prepared

_MARKETS_OF: Prepared[int] = Prepared(
    lambda ids: Intent.objects.filter(pk__in=ids).values_list("market_id", flat=True)
)
_LOCKED_MARKET_OF: Prepared[Market] = Prepared(
    lambda pk: Market.objects.select_for_update(no_key=True).filter(
        pk__in=Intent.objects.filter(pk=pk).values("market_id")
    )
)
_LOCKED_INTENTS: Prepared[Intent] = Prepared(
    lambda ids: Intent.objects.select_for_update().filter(pk__in=ids).order_by("pk")
)


@dataclass(frozen=True, slots=True)
class Done:
    """The intent as it is now, and whether the change counted."""

    intent: Intent
    applied: bool


def record(
    changes: Sequence[Change],
    *,
    actor: str,
    at: datetime,
    hold: Hold | None = None,
    halts: Sequence[Halt] = (),
) -> list[Done]:
    """Apply the changes in order; halt markets in the same transaction.

    A change whose expectation does not hold any more is left out and reported as not applied.
    Raises LeaseLostError where `hold` is lost; nothing is written then.
    """
    with writing():
        if hold is not None:
            lease.check(hold)
        stamp = Stamp.new(actor, at)
        batch = Batch(stamp)
        intents = lock(batch, [change.intent_id for change in changes], halts)
        done = [_step(batch, intents[change.intent_id], change) for change in changes]
        batch.flush()
        for order in halts:
            put_halt(batch.market(order.market_id), order, stamp)
    return done


def lock(batch: Batch, ids: Sequence[int], halts: Sequence[Halt] = ()) -> dict[int, Intent]:
    """Lock the markets of the intents and of the halts, then the intents."""
    if halts or len(ids) != 1:
        wanted = set(_MARKETS_OF.rows(ids)) | {order.market_id for order in halts}
        batch.hold_markets(LOCKED_MARKETS.rows(wanted))
    else:
        batch.hold_markets(_LOCKED_MARKET_OF.rows(ids[0]))
    return {intent.pk: intent for intent in _LOCKED_INTENTS.rows(ids)}


def _step(batch: Batch, intent: Intent, change: Change) -> Done:
    stale = (change.expect is not None and State(intent.state) not in change.expect) or (
        change.attempt is not None and intent.attempt != change.attempt
    )
    if stale:
        return Done(intent, False)
    batch.apply(
        intent,
        change.event,
        reason=change.reason,
        evidence=change.evidence,
        columns=change.columns,
        fills=change.fills,
    )
    return Done(intent, True)
