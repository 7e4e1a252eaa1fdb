"""What the board shows: every market with its state and counts, and the desk's totals.

A fixed number of queries, however many markets there are.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import Count, F, Min, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from orders.accounts import is_simulated
from orders.machine import ACTIVE, AT_VENUE, IN_DOUBT, AlertState, MarketState, State
from orders.models import Account, Alert, Intent, Market
from orders.queries import intents, links
from orders.queries.intents import IntentRow
from orders.queries.links import CutOff

BLOCKED = "BLOCKED"  # derived: an open market with something unresolved
REAL, SIMULATED = "REAL MONEY", "SIMULATED"  # what an account trades with
_RANK = {MarketState.HALTED.value: 0, BLOCKED: 1, MarketState.OPEN.value: 2}


@dataclass(frozen=True, slots=True)
class MarketRow:
    """One market. `oldest` is since when its oldest unresolved intent is unresolved."""

    pk: int
    account: str
    exchange: str
    simulated: bool
    active: bool
    symbol: str
    base: str
    state: str
    reason: str
    halted_at: datetime | None
    unresolved: int
    oldest: datetime | None
    waiting: int
    in_flight: int
    live: int
    position: Decimal
    last_event_at: datetime | None
    look_requested_at: datetime | None
    last: IntentRow | None

    @property
    def key(self) -> str:
        return f"market-{self.pk}"

    @property
    def order(self) -> tuple[int, str, str]:
        """Problems first; within a rank nothing ever jumps."""
        return (_RANK[self.state], self.account, self.symbol)


@dataclass(frozen=True, slots=True)
class Totals:
    markets: int
    halted: int
    blocked: int
    unresolved: int
    oldest: datetime | None
    waiting: int
    in_flight: int
    live: int


@dataclass(frozen=True, slots=True)
class Status:
    """What every page shows at its top."""

    halted: int
    blocked: int
    alerts: int  # open, not acknowledged
    acknowledged: int
    real: bool  # whether any account trades with real money
    simulated: bool
    cut_off: tuple[CutOff, ...]

    @property
    def mode(self) -> str:
        """The word that nobody may overlook."""
        if self.real:
            return f"{REAL} + {SIMULATED}" if self.simulated else REAL
        return SIMULATED if self.simulated else "NO ACCOUNT"

    @property
    def trouble(self) -> str:
        """For the page's title and for screen readers; "" when all is well."""
        parts = [
            f"{number} {word}"
            for number, word in (
                (self.halted, "HALTED"),
                (self.blocked, "BLOCKED"),
                (len(self.cut_off), "NOT CONNECTED"),
                (self.alerts, "alert" if self.alerts == 1 else "alerts"),
            )
            if number
        ]
        return ", ".join(parts)


def market_rows(
    now: datetime, ids: Collection[int] | None = None, *, every: bool = False
) -> list[MarketRow]:
    """Markets in the board's order: all of them, or those of the given ids.

    Those that left the account file are left out, unless they are halted or `every` is set.
    """
    newest = Intent.objects.filter(market=OuterRef("pk")).order_by("-pk").values("pk")[:1]
    markets = Market.objects.select_related("account").annotate(last_intent=Subquery(newest))
    if not every:
        markets = markets.filter(Q(active=True, account__active=True) | Q(state=MarketState.HALTED))
    if ids is not None:
        markets = markets.filter(pk__in=ids)
    found = list(markets)
    counts = _counts(now, {market.account for market in found}, ids)
    last = intents.rows_by_id(m.last_intent for m in found if m.last_intent is not None)
    rows = [
        _row(market, counts.get(market.pk, {}), last.get(market.last_intent or 0))
        for market in found
    ]
    return in_order(rows)


def in_order(rows: Iterable[MarketRow]) -> list[MarketRow]:
    return sorted(rows, key=lambda row: row.order)


def totals(rows: Collection[MarketRow]) -> Totals:
    return Totals(
        markets=len(rows),
        halted=sum(row.state == MarketState.HALTED for row in rows),
        blocked=sum(row.state == BLOCKED for row in rows),
        unresolved=sum(row.unresolved for row in rows),
        oldest=min((row.oldest for row in rows if row.oldest), default=None),
        waiting=sum(row.waiting for row in rows),
        in_flight=sum(row.in_flight for row in rows),
        live=sum(row.live for row in rows),
    )


def status(now: datetime) -> Status:
    accounts = list(Account.objects.filter(active=True).select_related("lease").order_by("name"))
    doubtful = Intent.objects.filter(unresolved(now, accounts), market__state=MarketState.OPEN)
    alerts = dict(
        Alert.objects.exclude(state=AlertState.RESOLVED)
        .order_by()
        .values_list("state")
        .annotate(n=Count("pk"))
    )
    simulated = [is_simulated(account) for account in accounts]
    return Status(
        halted=Market.objects.filter(state=MarketState.HALTED).count(),
        blocked=doubtful.order_by().values("market_id").distinct().count(),
        alerts=alerts.get(AlertState.OPEN.value, 0),
        acknowledged=alerts.get(AlertState.ACKNOWLEDGED.value, 0),
        real=not all(simulated),
        simulated=any(simulated),
        cut_off=links.cut_off(accounts, now),
    )


def unresolved(now: datetime, accounts: Iterable[Account] | None = None) -> Q:
    """UNKNOWN, RECONCILING, or IN_FLIGHT for longer than its account waits for an answer.

    Reads the accounts where they are not given.
    """
    by_timeout: dict[int, list[int]] = {}
    for account in Account.objects.all() if accounts is None else accounts:
        by_timeout.setdefault(account.timeout_ms, []).append(account.pk)
    late = [
        Q(
            state=State.IN_FLIGHT,
            account_id__in=ids,
            claimed_at__lt=now - timedelta(milliseconds=timeout_ms),
        )
        for timeout_ms, ids in by_timeout.items()
    ]
    return functools.reduce(operator.or_, late, Q(state__in=IN_DOUBT))


def state_of(market_id: int, state: str, now: datetime) -> str:
    """BLOCKED where a market is open in name, but something there is unresolved."""
    doubtful = Intent.objects.filter(unresolved(now), market_id=market_id)
    return BLOCKED if state == MarketState.OPEN and doubtful.exists() else state


def _counts(
    now: datetime, accounts: Iterable[Account], ids: Collection[int] | None
) -> Mapping[int, dict[str, Any]]:
    doubt = unresolved(now, accounts)
    active: QuerySet[Intent] = Intent.objects.filter(state__in=ACTIVE).order_by()
    if ids is not None:
        active = active.filter(market_id__in=ids)
    rows = active.values("market_id").annotate(
        unresolved=Count("pk", filter=doubt),
        oldest=Min(Coalesce(F("doubt_since"), F("claimed_at")), filter=doubt),
        waiting=Count("pk", filter=Q(state=State.INTENT)),
        in_flight=Count("pk", filter=Q(state=State.IN_FLIGHT)),
        live=Count("pk", filter=Q(state__in=AT_VENUE)),
    )
    return {row["market_id"]: dict(row) for row in rows}


def _row(market: Market, counts: Mapping[str, Any], last: IntentRow | None) -> MarketRow:
    state = market.state
    if state == MarketState.OPEN and counts.get("unresolved", 0):
        state = BLOCKED
    return MarketRow(
        pk=market.pk,
        account=market.account.name,
        exchange=market.account.exchange,
        simulated=is_simulated(market.account),
        active=market.active and market.account.active,
        symbol=market.symbol,
        base=market.base,
        state=state,
        reason=market.halted_reason,
        halted_at=market.halted_at,
        unresolved=counts.get("unresolved", 0),
        oldest=counts.get("oldest"),
        waiting=counts.get("waiting", 0),
        in_flight=counts.get("in_flight", 0),
        live=counts.get("live", 0),
        position=market.position,
        last_event_at=market.last_event_at,
        look_requested_at=market.look_requested_at,
        last=last,
    )
