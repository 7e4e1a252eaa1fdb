"""Markets: seen by all, halted and opened by operators."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol

from django.db.models import Count
from django.http import HttpRequest
from ninja import Query, Router, Schema

from orders import operate
from orders.api import access, documentation, present
from orders.api.body import read, storable
from orders.api.decisions import ReasonIn, parse
from orders.api.intents import Name
from orders.api.problems import ProblemError, invalid, not_found
from orders.api.schemas import MarketOut, MarketsOut
from orders.clock import SYSTEM
from orders.machine import ACTIVE, MarketState
from orders.models import Account, ApiToken, Intent, Market
from orders.queries.board import unresolved
from orders.roles import Right

router = Router(tags=["markets"])

_ACT: dict[str, Any] = {
    "response": {200: MarketOut, **documentation.problems(404, 409, 422)},
    "openapi_extra": documentation.body(ReasonIn),
}


class MarketFilter(Schema):
    account: Name | None = None
    state: MarketState | None = None


class Act(Protocol):
    def __call__(self, market_id: int, *, actor: str, reason: str) -> Market: ...


@router.get(
    "",
    response={200: MarketsOut, **documentation.problems(422)},
    summary="List all markets",
    operation_id="list_markets",
)
def list_markets(request: HttpRequest, filters: Query[MarketFilter]) -> dict[str, Any]:
    token = access.caller(request, Right.VIEW)
    rows = Market.objects.filter(access.in_accounts(token)).select_related("account")
    if filters.account:
        rows = rows.filter(account__name=filters.account)
    if filters.state:
        rows = rows.filter(state=filters.state.value)
    return {"items": _shown(list(rows.order_by("account__name", "symbol")))}


@router.post(
    "/{account}/{path:symbol}/halt",
    summary="Stop placing; what waits is denied, open orders stay",
    operation_id="halt_market",
    **_ACT,
)
def halt_market(request: HttpRequest, account: str, symbol: str) -> dict[str, Any]:
    return _do(operate.halt, request, account, symbol)


@router.post(
    "/{account}/{path:symbol}/resume",
    summary="Let a halted market place again; refused while anything there is unresolved",
    operation_id="resume_market",
    **_ACT,
)
def resume_market(request: HttpRequest, account: str, symbol: str) -> dict[str, Any]:
    return _do(operate.resume, request, account, symbol)


@router.post(
    "/{account}/{path:symbol}/reconcile",
    summary="Look at everything unresolved there now",
    operation_id="reconcile_market",
    **_ACT,
)
def reconcile_market(request: HttpRequest, account: str, symbol: str) -> dict[str, Any]:
    return _do(operate.reconcile, request, account, symbol)


def _do(act: Act, request: HttpRequest, account: str, symbol: str) -> dict[str, Any]:
    """Check, act, and show the market as it is then."""
    token = access.caller(request, Right.OPERATE)
    market = _find(token, account, symbol)
    access.check_whole_market(token)
    form = parse(ReasonIn, read(request) if request.body else {})
    try:
        act(market.pk, actor=access.actor(token), reason=form.reason)
    except operate.ReasonError as error:
        raise invalid("reason", str(error)) from None
    except operate.RefusedError as error:
        shown = _shown([_find(token, account, symbol)])[0]
        raise ProblemError(409, "refused", str(error), market=shown) from None
    return _shown([_find(token, account, symbol)])[0]


def _find(token: ApiToken, account: str, symbol: str) -> Market:
    """Raises ProblemError 404, also where the token may not see it."""
    found = None
    if storable(account + symbol):
        rows = Market.objects.filter(access.in_accounts(token)).select_related("account")
        found = rows.filter(account__name=account, symbol=symbol).first()
    if found is None:
        raise not_found(f"there is no market {symbol!r} in an account {account!r}")
    return found


def _shown(markets: Collection[Market]) -> list[dict[str, Any]]:
    """One query more, however many markets there are."""
    accounts: set[Account] = {market.account for market in markets}
    doubtful = (
        Intent.objects.filter(
            unresolved(SYSTEM.now(), accounts),
            state__in=ACTIVE,  # the partial index that holds the few that are not at their end
            market__in=[market.pk for market in markets],
        )
        .order_by()
        .values_list("market_id")
        .annotate(number=Count("pk"))
    )
    counts = dict(doubtful)
    return [present.market(market, counts.get(market.pk, 0)) for market in markets]
