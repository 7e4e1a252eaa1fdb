"""What lasts too long is told, whatever the lane itself is busy with, and without the venue."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import partial

from django.conf import settings
from django.db.models import F, Q, QuerySet

from orders import journal
from orders.journal import AlertDraft, Halt, Window
from orders.lane.context import Lane
from orders.machine import AT_VENUE, IN_DOUBT, AlertState, State
from orders.models import Alert, Intent, Lease, Market
from orders.prepared import Prepared

EVERY_S = 1.0
KINDS = ("unresolved_during_limit", "fills_missing", "market_unseen")


def _late(account_id: int, since: datetime) -> QuerySet[Intent, Intent]:
    doubt = Q(state__in=IN_DOUBT, doubt_since__lte=since)
    late = Q(state=State.IN_FLIGHT, claimed_at__lte=since)
    return Intent.objects.filter(doubt | late, account_id=account_id).order_by("pk")


def _alerts(account_id: int, *kinds: str) -> QuerySet[Alert, Alert]:
    rows = Alert.objects.filter(account_id=account_id, kind__in=kinds)
    return rows.exclude(state=AlertState.RESOLVED)


_DOUBTFUL: Prepared[Intent] = Prepared(_late)
_TOLD: Prepared[str] = Prepared(
    lambda account_id: _alerts(account_id, *KINDS).values_list("topic", flat=True)
)
_HALTED_FOR: Prepared[int | None] = Prepared(
    lambda account_id: _alerts(account_id, "market_halted").values_list("intent_id", flat=True)
)
_UNBOOKED: Prepared[Intent] = Prepared(
    lambda account_id, since: Intent.objects.filter(
        ~Q(filled=F("venue_filled")),
        account_id=account_id,
        state__in=AT_VENUE,
        updated_at__lte=since,
    )
)
_UNSEEN: Prepared[Market] = Prepared(
    lambda account_id: Market.objects.filter(
        account_id=account_id, active=True, looked_over_at__isnull=True
    )
)
_TAKEN_BEFORE: Prepared[int] = Prepared(
    lambda account_id, since: Lease.objects.filter(pk=account_id, taken_at__lte=since).values_list(
        "account_id", flat=True
    )
)


async def watch(lane: Lane) -> None:
    """Look at the clock for ever."""
    while True:
        await lane.clock.sleep(EVERY_S)
        limited_until = lane.limited_until if lane.limited else None
        await lane.database.run(partial(check, lane, lane.clock.now(), limited_until))


def check(lane: Lane, now: datetime, limited_until: datetime | None) -> None:
    """End what went out of date, halt or tell what is in doubt too long, take back what is over."""
    if journal.waiting(lane.account.pk, now):
        end = Window(0, now, 0.0, None, lane.account.timeout_ms)
        journal.claim(lane.hold, end, actor=lane.actor)
    since = now - timedelta(seconds=settings.ORDERDESK_DOUBT_S)
    drafts = [*_unbooked(lane, since), *_unseen(lane, since)]
    doubtful = _doubtful(lane, since)
    if limited_until is not None:
        drafts += [_waits_for_limit(intent, limited_until) for intent in doubtful]
    elif lane.limited_until is None or lane.limited_until <= since:
        # The cap counts from the end of a limit: while it lasted nobody could look.
        told = _halted_for(lane)
        for intent in doubtful:
            if intent.pk not in told:
                journal.halt(_halt(intent), actor=lane.actor, at=now)
    _tell(lane, drafts, now)


def _tell(lane: Lane, drafts: Iterable[AlertDraft], now: datetime) -> None:
    """Raise what is new, once; resolve what holds no more."""
    wanted = {draft.topic: draft for draft in drafts}
    told = set(_TOLD.rows(lane.account.pk))
    for topic in wanted.keys() - told:
        journal.raise_alert(wanted[topic], actor=lane.actor, at=now)
    for topic in told - wanted.keys():
        journal.resolve_topic(topic, actor=lane.actor, reason="it is over", at=now)


def _doubtful(lane: Lane, since: datetime) -> list[Intent]:
    """In doubt since before then."""
    return _DOUBTFUL.rows(lane.account.pk, since)


def _halted_for(lane: Lane) -> set[int | None]:
    """The intents of which people know already that they halted a market."""
    return set(_HALTED_FOR.rows(lane.account.pk))


def _halt(intent: Intent) -> Halt:
    lines = intent.transitions.filter(subject="intent").exclude(reason="").order_by("-seq")
    why = lines.values_list("reason", flat=True).first() or "nothing was heard of it"
    return Halt(
        intent.market_id,
        f"{intent.client_order_id} is unresolved for {settings.ORDERDESK_DOUBT_S} s: {why}",
        kind="doubt",
        remedy="Compare the intent's evidence with the venue's own pages; the desk keeps "
        "looking. Resume when nothing is unresolved.",
        intent_id=intent.pk,
    )


def _waits_for_limit(intent: Intent, until: datetime) -> AlertDraft:
    return AlertDraft(
        kind=KINDS[0],
        topic=f"{KINDS[0]}:{intent.pk}",
        severity="warning",
        message=f"{intent.client_order_id} is unresolved, and the venue may not be asked before "
        f"{until:%H:%M:%S} UTC: it limits or bans this desk",
        remedy="Look at the order on the venue's own pages. The desk asks as soon as it may.",
        account_id=intent.account_id,
        market_id=intent.market_id,
        intent_id=intent.pk,
    )


def _unbooked(lane: Lane, since: datetime) -> list[AlertDraft]:
    return [
        AlertDraft(
            kind=KINDS[1],
            topic=f"{KINDS[1]}:{intent.pk}",
            severity="critical",
            message=f"{intent.client_order_id}: the venue reports {intent.venue_filled} executed, "
            f"but shows executions of {intent.filled} only",
            remedy="Compare with the venue's list of trades. The order stays open here until its "
            "executions are known.",
            account_id=intent.account_id,
            market_id=intent.market_id,
            intent_id=intent.pk,
        )
        for intent in _UNBOOKED.rows(lane.account.pk, since)
    ]


def _unseen(lane: Lane, since: datetime) -> list[AlertDraft]:
    """Markets that recovery cannot see: nothing is sent there."""
    rows = _UNSEEN.rows(lane.account.pk)
    if not rows or not _TAKEN_BEFORE.any(lane.account.pk, since):
        return []
    return [
        AlertDraft(
            kind=KINDS[2],
            topic=f"{KINDS[2]}:{market.pk}",
            severity="critical",
            message=f"{market.symbol} on {lane.account.name}: its orders at the venue cannot be "
            "listed, so nothing is sent there",
            remedy="Check the venue's status and the key's permissions. The desk keeps asking.",
            account_id=lane.account.pk,
            market_id=market.pk,
        )
        for market in rows
    ]
