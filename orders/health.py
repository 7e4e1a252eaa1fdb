"""For machines that watch the desk: is it alive, is it ready, what does it count."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from django.db import Error
from django.db.models import Count, Min
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from orders import tokens
from orders.clock import SYSTEM
from orders.journal import database_now
from orders.machine import ACTIVE, AlertState, MarketState, State
from orders.models import Account, Alert, Intent, Lease, Market
from orders.queries.board import unresolved
from orders.roles import Right, Role, allows

_FORWARDED = ("X-Forwarded-For", "Forwarded", "X-Real-Ip")


@never_cache
@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """The process answers. It asks nobody else, so a restart is what helps where it fails."""
    return HttpResponse("ok\n", content_type="text/plain")


@never_cache
@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """200 where every active account can place orders; 503 where one lacks something.

    The status is for everybody, the names of the accounts only for whoever may see the metrics.
    """
    try:
        lacking = _lacking()
    except Error as error:
        return _ready({"database": f"cannot be reached: {type(error).__name__}"}, request)
    return _ready(lacking, request)


def _ready(lacking: dict[str, str], request: HttpRequest) -> JsonResponse:
    body: dict[str, Any] = {"ready": not lacking}
    if lacking and _is_trusted(request):
        body["lacking"] = lacking
    return JsonResponse(body, status=503 if lacking else 200)


def _lacking() -> dict[str, str]:
    """What each active account lacks before it can place, by name."""
    accounts = list(Account.objects.filter(active=True).select_related("lease").order_by("name"))
    now = database_now()
    found = {account.name: _lack(getattr(account, "lease", None), now) for account in accounts}
    return {name: words for name, words in found.items() if words}


def _lack(lease: Lease | None, now: datetime) -> str:
    if lease is None or not lease.owner or lease.deadline is None:
        return "no lane holds it; is the lanes' cluster running?"
    if lease.deadline <= now:
        silent_s = (now - lease.deadline).total_seconds()
        return f"its lane is silent: the lease ended {silent_s:.1f} s ago"
    if lease.recovered_at is None:
        return "its lane has not recovered yet: the venue is being asked about open intents"
    return ""


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Prometheus text, for loopback without a proxy between, or for a viewer's token.

    Everything is counted from the database when asked, so any web process tells the same.
    """
    if not _is_trusted(request):
        answer = HttpResponse("needs Authorization: Bearer TOKEN\n", status=401)
        answer["WWW-Authenticate"] = 'Bearer realm="orderdesk"'
        return answer
    registry = CollectorRegistry()
    registry.register(_Desk())
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


def _is_trusted(request: HttpRequest) -> bool:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        row = tokens.authenticate(token.strip())
        return (
            row is not None
            and not row.accounts
            and not row.strategies
            and row.role in set(Role)
            and allows(Role(row.role), Right.VIEW)
        )
    forwarded = any(name in request.headers for name in _FORWARDED)
    return not forwarded and _is_loopback(request.META.get("REMOTE_ADDR", ""))


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


class _Desk(Collector):
    """A fixed number of queries, none of which reads the ended intents."""

    def collect(self) -> Iterator[Metric]:
        accounts = list(Account.objects.filter(active=True).select_related("lease"))
        yield _intents_by_state()
        yield from _doubt(accounts)
        yield _halted()
        yield _alerts()
        yield from _lanes(accounts)


def _gauge(name: str, about: str, labels: Iterable[str]) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"orderdesk_{name}", about, labels=list(labels))


def _intents_by_state() -> Metric:
    gauge = _gauge("intents", "Intents that are not at their end, by state.", ["account", "state"])
    rows = Intent.objects.filter(state__in=sorted(ACTIVE)).order_by()
    counted = {
        (account, state): number
        for account, state, number in rows.values_list("account__name", "state").annotate(
            number=Count("pk")
        )
    }
    for account in Account.objects.filter(active=True).values_list("name", flat=True):
        for state in sorted(ACTIVE):
            counted.setdefault((account, state.value), 0)
    for (account, state), number in sorted(counted.items()):
        gauge.add_metric([account, State(state).value], number)
    return gauge


def _doubt(accounts: list[Account]) -> Iterator[Metric]:
    number = _gauge("unresolved_intents", "Intents whose state is not known.", ["account"])
    age = _gauge("oldest_unresolved_seconds", "Age of the longest doubt, 0 for none.", ["account"])
    now = SYSTEM.now()
    rows = (
        Intent.objects.filter(unresolved(now, accounts), state__in=sorted(ACTIVE))
        .order_by()
        .values_list("account_id")
        .annotate(number=Count("pk"), since=Min(Coalesce("doubt_since", "claimed_at")))
    )
    found = {account_id: (count, since) for account_id, count, since in rows}
    for account in accounts:
        count, since = found.get(account.pk, (0, None))
        number.add_metric([account.name], count)
        age.add_metric([account.name], max(0.0, (now - since).total_seconds()) if since else 0.0)
    yield number
    yield age


def _halted() -> Metric:
    gauge = _gauge("market_halted", "1 for a market that is halted.", ["account", "symbol"])
    rows = Market.objects.filter(active=True, account__active=True) | Market.objects.filter(
        state=MarketState.HALTED
    )
    for market in rows.select_related("account").order_by("account__name", "symbol"):
        halted = market.state == MarketState.HALTED
        gauge.add_metric([market.account.name, market.symbol], 1 if halted else 0)
    return gauge


def _alerts() -> Metric:
    gauge = _gauge("alerts", "Alerts that are not resolved.", ["severity", "state"])
    rows = Alert.objects.exclude(state=AlertState.RESOLVED).order_by()
    counted = {
        (severity, state.value): 0
        for severity in Alert.SEVERITIES
        for state in (AlertState.OPEN, AlertState.ACKNOWLEDGED)
    }
    for severity, state, number in rows.values_list("severity", "state").annotate(
        number=Count("pk")
    ):
        counted[severity, state] = number
    for labels, number in counted.items():
        gauge.add_metric(list(labels), number)
    return gauge


def _lanes(accounts: list[Account]) -> Iterator[Metric]:
    epoch = _gauge("lane_epoch", "The account's fencing number; it only grows.", ["account"])
    ready = _gauge("account_ready", "1 where the account can place orders.", ["account"])
    now = database_now()
    for account in accounts:
        lease = getattr(account, "lease", None)
        epoch.add_metric([account.name], lease.epoch if lease else 0)
        ready.add_metric([account.name], 0 if _lack(lease, now) else 1)
    yield epoch
    yield ready
