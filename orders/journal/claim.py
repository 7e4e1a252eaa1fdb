"""The claim: the durable word that a request is about to leave."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import F, Q

from orders.journal import lease
from orders.journal.batch import Batch
from orders.journal.entries import Stamp
from orders.journal.lease import Hold
from orders.journal.writing import writing
from orders.machine import IN_DOUBT, Event, MarketState, State
from orders.models import Account, Intent, Lease, Market

LEAST_VALIDITY = timedelta(milliseconds=50)  # less is not worth a request
MOST_ENDED = 500  # in one transaction


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
    row = Lease.objects.select_related("account").get(pk=hold.account_id)
    if row.recovered_at is None or row.taken_at is None:
        return False
    if row.account.restored_at is None:
        return True
    longest = timedelta(milliseconds=row.account.request_expiry_ms)
    return window.at >= row.account.restored_at + longest


def in_doubt(hold: Hold, window: Window) -> set[int]:
    """Markets where something is unresolved: nothing new may be sent there."""
    late = window.at - timedelta(milliseconds=window.timeout_ms)
    unresolved = Q(state__in=IN_DOUBT) | Q(state=State.IN_FLIGHT) & (
        Q(claimed_at__lt=late) | ~Q(epoch=hold.epoch)
    )
    rows = Intent.objects.filter(unresolved, account_id=hold.account_id)
    return set(rows.values_list("market_id", flat=True))


def waiting(account_id: int, at: datetime) -> bool:
    """Whether a claim would find anything to do, without taking a lock."""
    rows = Intent.objects.filter(account_id=account_id, state=State.INTENT)
    doubt = Intent.objects.filter(account_id=account_id, state__in=IN_DOUBT).values("market_id")
    return rows.filter(_over(at) | _due(at) & ~Q(market_id__in=doubt)).exists()


def _over(at: datetime) -> Q:
    """What must never be sent: withdrawn, (almost) out of date, or in a halted market."""
    return (
        Q(cancel_requested_at__isnull=False)
        | Q(valid_until__lte=at + LEAST_VALIDITY)
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
    rows = Intent.objects.filter(
        account=account, state=State.INTENT, decided_at__lte=account.restored_at
    )
    return list(rows.exclude(cleared_at__gt=account.restored_at).order_by("pk"))


def _lock_waiting(
    batch: Batch, hold: Hold, window: Window, recovered: bool
) -> tuple[list[Intent], list[Intent]]:
    """Lock what is over, and what may be taken now; their markets first."""
    rows = Intent.objects.filter(account_id=hold.account_id, state=State.INTENT).order_by("pk")
    doubtful = in_doubt(hold, window)
    over = dict(rows.filter(_over(window.at)).values_list("pk", "market_id")[:MOST_ENDED])
    free = rows.filter(_due(window.at)).exclude(_over(window.at)).exclude(market_id__in=doubtful)
    limit = window.limit if recovered else 0
    due = dict(free.values_list("pk", "market_id")[:limit])
    markets = Market.objects.select_for_update(no_key=True, of=("self",)).select_related("account")
    batch.hold_markets(markets.filter(pk__in={*over.values(), *due.values()}).order_by("pk"))
    locked = Intent.objects.select_for_update().filter(pk__in=[*over, *due], state=State.INTENT)
    found = list(locked.order_by("pk"))
    # A cancel or a halt may have come in between.
    ended = [intent for intent in found if intent.pk in over or _is_over(batch, intent, window)]
    return ended, [intent for intent in found if intent not in ended]


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
