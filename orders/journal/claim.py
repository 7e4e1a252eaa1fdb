"""The claim: the durable word that a request is about to leave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import F, Q, QuerySet

from orders.journal import lease
from orders.journal.batch import LOCKED_MARKETS, Batch
from orders.journal.entries import Stamp
from orders.journal.lease import Hold
from orders.journal.writing import writing
from orders.machine import IN_DOUBT, Event, MarketState, State
from orders.models import Account, Intent, Lease
from orders.prepared import Prepared

LEAST_VALIDITY = timedelta(milliseconds=50)  # less is not worth a request
MOST_ENDED = MOST_CLAIMED = 500  # in one transaction


@dataclass(frozen=True, slots=True)
class Window:
    """What a claim may take, and until when the venue may accept what it takes.

    at: our clock, read before the claim was asked for.
    offset_ms: the venue's clock minus ours. expiry_ms: None where the venue honours no expiry.
    timeout_ms: after this long in flight an intent is in doubt.
    """

    limit: int
    at: datetime
    offset_ms: float
    expiry_ms: int | None
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class Claimed:
    """Intents that are IN_FLIGHT now, by this claim."""

    intents: list[Intent]

    def __bool__(self) -> bool:
        return bool(self.intents)


def claim(hold: Hold, window: Window, *, actor: str) -> Claimed:
    """Take what waits and may be sent; end what may not be sent any more.

    Nothing is taken in a market in doubt or halted. Raises LeaseLostError.
    """
    with writing() as current:
        lease.check(hold)
        current.changed = False
        # Recover first: until then nothing is taken, but what is out of date still ends.
        recovered = _may_send(hold, window)
        stamp = Stamp.new(actor, window.at)
        batch = Batch(stamp)
        over, due = _lock_waiting(batch, hold, window, recovered)
        for intent in over:
            _end(batch, intent, window)
        for intent in due:
            batch.apply(intent, Event.CLAIMED, columns=_claim_columns(intent, hold, window))
        current.changed = batch.flush()
        return Claimed(due)


def _may_send(hold: Hold, window: Window) -> bool:
    """Recovered, and past the longest expiry of anything sent before a restore.

    Whatever the lost journal had sent was sent before this lane began.
    """
    row = _LEASE.first(hold.account_id)
    if row is None or row.recovered_at is None or row.taken_at is None:
        return False
    if row.account.restored_at is None:
        return True
    longest = timedelta(milliseconds=row.account.request_expiry_ms)
    return window.at >= row.account.restored_at + longest


def in_doubt(hold: Hold, window: Window) -> set[int]:
    """Markets where something is unresolved: nothing new may be sent there."""
    late = window.at - timedelta(milliseconds=window.timeout_ms)
    return set(_IN_DOUBT.rows(hold.account_id, late, hold.epoch))


def waiting(account_id: int, at: datetime) -> bool:
    """Whether a claim would find anything to do, without taking a lock."""
    return _WAITING.any(account_id, at, at + LEAST_VALIDITY)


def _unresolved(account_id: int, late: datetime, epoch: int) -> QuerySet[Intent, int]:
    doubt = Q(state__in=IN_DOUBT) | Q(state=State.IN_FLIGHT) & (
        Q(claimed_at__lt=late) | ~Q(epoch=epoch)
    )
    rows = Intent.objects.filter(doubt, account_id=account_id)
    return rows.values_list("market_id", flat=True)


def _waiting(account_id: int, at: datetime, soon: datetime) -> QuerySet[Intent, int]:
    rows = Intent.objects.filter(account_id=account_id, state=State.INTENT)
    doubt = Intent.objects.filter(account_id=account_id, state__in=IN_DOUBT).values("market_id")
    found = rows.filter(_over(soon) | _due(at) & ~Q(market_id__in=doubt))
    return found.values_list("pk", flat=True)[:1]


def _over(soon: datetime) -> Q:
    """What must never be sent: withdrawn, out of date by then, or in a halted market."""
    return (
        Q(cancel_requested_at__isnull=False)
        | Q(valid_until__lte=soon)
        | Q(market__state=MarketState.HALTED)
    )


def _due(at: datetime) -> Q:
    """Back-off over, market looked over, and looked for where it may be out already.

    A decision from before a restore may have been sent by the journal that was lost, whatever the
    backup says of it.
    """
    looked_for = (
        Q(account__restored_at__isnull=True)
        | Q(decided_at__gt=F("account__restored_at"))
        | Q(cleared_at__gt=F("account__restored_at"))
    )
    rested = Q(not_before__isnull=True) | Q(not_before__lte=at)
    return rested & looked_for & Q(market__looked_over_at__isnull=False)


def to_look_for(account: Account) -> list[Intent]:
    """What waits for its proof of absence before it may be sent after a restore."""
    if account.restored_at is None:
        return []
    return _TO_LOOK_FOR.rows(account.pk, account.restored_at)


def _lock_waiting(
    batch: Batch, hold: Hold, window: Window, recovered: bool
) -> tuple[list[Intent], list[Intent]]:
    """Lock what is over, and what may be taken now; their markets first."""
    soon = window.at + LEAST_VALIDITY
    over, due = dict(_OVER.rows(hold.account_id, soon)), {}
    if recovered and window.limit > 0:
        doubtful = [0, *in_doubt(hold, window)]  # 0: no market, but a list to compare with
        free = _DUE.rows(hold.account_id, window.at, soon, doubtful)
        due = dict(free[: window.limit])
    batch.hold_markets(LOCKED_MARKETS.rows({*over.values(), *due.values()}))
    found = _LOCKED_WAITING.rows([*over, *due])
    # A cancel or a halt may have come in between.
    ended = [intent for intent in found if intent.pk in over or _is_over(batch, intent, window)]
    return ended, [intent for intent in found if intent not in ended]


def _over_now(account_id: int, soon: datetime) -> QuerySet[Intent, tuple[int, int]]:
    rows = Intent.objects.filter(_over(soon), account_id=account_id, state=State.INTENT)
    return rows.order_by("pk").values_list("pk", "market_id")[:MOST_ENDED]


def _due_now(
    account_id: int, at: datetime, soon: datetime, doubtful: Sequence[int]
) -> QuerySet[Intent, tuple[int, int]]:
    rows = Intent.objects.filter(_due(at), account_id=account_id, state=State.INTENT)
    free = rows.exclude(_over(soon)).exclude(market_id__in=doubtful)
    return free.order_by("pk").values_list("pk", "market_id")[:MOST_CLAIMED]


_TO_LOOK_FOR: Prepared[Intent] = Prepared(
    lambda account_id, restored_at: (
        Intent.objects.filter(
            account_id=account_id, state=State.INTENT, decided_at__lte=restored_at
        )
        .exclude(cleared_at__gt=restored_at)
        .order_by("pk")
    )
)
_LEASE: Prepared[Lease] = Prepared(
    lambda account_id: Lease.objects.select_related("account").filter(pk=account_id)
)
_IN_DOUBT: Prepared[int] = Prepared(_unresolved)
_WAITING: Prepared[int] = Prepared(_waiting)
_OVER: Prepared[tuple[int, int]] = Prepared(_over_now)
_DUE: Prepared[tuple[int, int]] = Prepared(_due_now)
_LOCKED_WAITING: Prepared[Intent] = Prepared(
    lambda ids: (
        Intent.objects.select_for_update().filter(pk__in=ids, state=State.INTENT).order_by("pk")
    )
)


def _is_over(batch: Batch, intent: Intent, window: Window) -> bool:
    return (
        intent.cancel_requested_at is not None
        or intent.valid_until <= window.at + LEAST_VALIDITY
        or batch.market(intent.market_id).state == MarketState.HALTED
    )


def _end(batch: Batch, intent: Intent, window: Window) -> None:
    market = batch.market(intent.market_id)
    if intent.cancel_requested_at is not None:
        by = intent.cancel_requested_by
        batch.apply(intent, Event.WITHDRAWN, reason=f"cancel asked by {by}; nothing is out")
    elif intent.valid_until <= window.at + LEAST_VALIDITY:
        until = f"{intent.valid_until:%Y-%m-%d %H:%M:%S}"
        batch.apply(intent, Event.EXPIRED, reason=f"valid until {until} UTC; not sent")
    elif market.state == MarketState.HALTED:
        batch.apply(intent, Event.DENIED, reason=f"market halted: {market.halted_reason}")


def _claim_columns(intent: Intent, hold: Hold, window: Window) -> dict[str, object]:
    return {
        "attempt": intent.attempt + 1,
        "epoch": hold.epoch,
        "claimed_at": window.at,
        "not_before": None,
        "last_expiry_ms": _last_expiry_ms(intent, window),
    }


def attempt_expiry_ms(intent: Intent, window: Window) -> int | None:
    """Until when, venue clock, the venue may accept the attempt that is claimed in this window.

    Counted from the claim and never later than valid_until; None where no expiry is honoured.
    """
    if window.expiry_ms is None:
        return None
    now_ms = window.at.timestamp() * 1000 + window.offset_ms
    valid_ms = intent.valid_until.timestamp() * 1000 + window.offset_ms
    return int(min(now_ms + window.expiry_ms, valid_ms))


def _last_expiry_ms(intent: Intent, window: Window) -> int | None:
    """The latest expiry over all attempts; None for ever once one went out without."""
    this = attempt_expiry_ms(intent, window)
    if this is None or (intent.attempt and intent.last_expiry_ms is None):
        return None
    return max(this, intent.last_expiry_ms or 0)
