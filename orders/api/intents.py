"""Decisions in, intents out."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from asgiref.sync import sync_to_async
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Schema, Status
from pydantic import AfterValidator, Field

from orders import operate
from orders.api import access, documentation, following, present, submissions
from orders.api.body import read, storable
from orders.api.cursor import DEFAULT_LIMIT, MAX_LIMIT, take
from orders.api.decisions import DecisionIn, Instant, ReasonIn, parse
from orders.api.problems import invalid, not_found
from orders.api.schemas import (
    AdmittedOut,
    DeniedOut,
    IntentDetailOut,
    IntentOut,
    IntentsOut,
    ItemsOut,
)
from orders.machine import TERMINAL, State
from orders.models import ApiToken, Intent, Market
from orders.roles import Right

router = Router(tags=["intents"])

MAX_WAIT_S = 60.0

# How far an intent has come. To wait for a state is to wait for it or anything further.
_PROGRESS = {
    State.INTENT: 0,
    State.IN_FLIGHT: 1,
    State.UNKNOWN: 2,
    State.RECONCILING: 3,
    State.ACKED: 4,
    State.LIVE: 5,
    **dict.fromkeys(TERMINAL, 6),
}


def _storable(value: str) -> str:
    if not storable(value):
        raise ValueError("holds a character that no name has")
    return value


Name = Annotated[str, Field(max_length=200), AfterValidator(_storable)]


REPLAYED = "Idempotent-Replayed"


@router.post(
    "",
    response={
        201: AdmittedOut,
        200: ItemsOut,
        409: DeniedOut,
        **documentation.problems(400, 413, 422, 503),
    },
    summary="Submit a decision, or a list of up to 500",
    operation_id="submit_intents",
    openapi_extra={
        "parameters": [documentation.IDEMPOTENCY_KEY],
        "responses": {201: {"headers": documentation.REPLAYED}},
        **documentation.body(DecisionIn, many=True),
    },
)
def submit_intents(request: HttpRequest, response: HttpResponse) -> Status[Any]:
    """Durable when answered. After a time-out, a lost connection or a 5xx send the same again:
    the same decision gets its recorded answer, and never a second order.

    A list is answered with 200 and one item for each decision, in order, with its own `status`.
    """
    token = access.caller(request, Right.TRADE)
    data = read(request)
    header = request.headers.get("Idempotency-Key")
    if isinstance(data, list):
        return Status(200, {"items": submissions.submit_list(token, data, header)})
    status, intent, replayed = submissions.submit_one(token, data, header)
    if replayed:
        response[REPLAYED] = "true"
    return Status(status, intent)


class IntentFilter(Schema):
    account: Name | None = None
    symbol: Name | None = None
    strategy: Name | None = None
    state: list[State] = Field([], description="one or more, e.g. state=LIVE&state=ACKED")
    since: Instant | None = Field(None, description="admitted at or after")
    until: Instant | None = Field(None, description="admitted before")
    cursor: Annotated[str, Field(max_length=100)] | None = None
    limit: int = Field(DEFAULT_LIMIT, ge=1, le=MAX_LIMIT)


class WaitFilter(Schema):
    account: Name | None = Field(None, description="where two accounts know the ID")
    wait: State | None = Field(None, description="answer when it is in this state, or further")
    timeout_s: float = Field(5.0, ge=0, le=MAX_WAIT_S, allow_inf_nan=False)


@router.get(
    "",
    response={200: IntentsOut, **documentation.problems(422)},
    summary="List intents, newest first",
    operation_id="list_intents",
)
def list_intents(request: HttpRequest, filters: Query[IntentFilter]) -> dict[str, Any]:
    token = access.caller(request, Right.VIEW)
    rows = Intent.objects.filter(access.visible_intents(token), _wanted(filters))
    page, following_page = take(rows.select_related("account"), filters.cursor, filters.limit)
    return {"items": [present.current(row) for row in page], "next": following_page}


def _wanted(filters: IntentFilter) -> Q:
    wanted = Q()
    if filters.account or filters.symbol:
        names = {"account__name": filters.account, "symbol": filters.symbol}
        markets = Market.objects.filter(**{name: value for name, value in names.items() if value})
        wanted &= Q(market_id__in=list(markets.values_list("pk", flat=True)))
    if filters.strategy:
        wanted &= Q(strategy=filters.strategy)
    if filters.state:
        wanted &= Q(state__in=[state.value for state in filters.state])
    for lookup, at in (("created_at__gte", filters.since), ("created_at__lt", filters.until)):
        if at is not None:
            wanted &= Q(**{lookup: at})
    return wanted


@router.get(
    "/{client_order_id}",
    response={200: IntentDetailOut, **documentation.problems(404, 409, 422, 503)},
    summary="One intent with its journal and fills; waits for a state where asked to",
    operation_id="get_intent",
)
async def get_intent(
    request: HttpRequest, client_order_id: str, options: Query[WaitFilter]
) -> dict[str, Any]:
    token = access.caller(request, Right.VIEW)
    seen = following.WAKEUPS.now() if options.wait else 0
    intent = await sync_to_async(_find)(token, client_order_id, options.account)
    if options.wait and not _reached(intent.state, options.wait):
        await following.get_ready()
        with following.place():
            await _wait(intent.pk, options.wait, options.timeout_s, seen)
    return await sync_to_async(_detail)(intent.pk)


def _find(token: ApiToken, client_order_id: str, account: str | None) -> Intent:
    """Raises ProblemError: 404, also where the token may not see it, 422 for two."""
    if not storable(client_order_id):
        raise invalid("client_order_id", "holds a character that no name has")
    rows = Intent.objects.filter(
        access.visible_intents(token), client_order_id=client_order_id
    ).select_related("account")
    if account:
        rows = rows.filter(account__name=account)
    found = list(rows.order_by("pk")[:2])
    if not found:
        raise not_found(f"there is no intent {client_order_id!r}")
    if len(found) > 1:
        names = " and ".join(row.account.name for row in found)
        raise invalid("account", f"accounts {names} know this ID; say which one: ?account=NAME")
    return found[0]


def _reached(state: str, wanted: State) -> bool:
    return _PROGRESS[State(state)] >= _PROGRESS[wanted]


async def _wait(pk: int, wanted: State, timeout_s: float, seen: int) -> None:
    """Return when the intent has come far enough, or after timeout_s."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_s

    def state() -> str:
        return Intent.objects.values_list("state", flat=True).get(pk=pk)

    while (left := deadline - loop.time()) > 0:
        seen = await following.WAKEUPS.after(seen, left)
        if _reached(await following.read(state), wanted):
            return


def _detail(pk: int) -> dict[str, Any]:
    intent = Intent.objects.select_related("account").get(pk=pk)
    lines = intent.transitions.select_related("account", "market", "intent").order_by("seq")
    return {
        **present.current(intent),
        "transitions": [present.transition(line) for line in lines],
        "fills": [present.fill(row) for row in intent.fills.order_by("pk")],
    }


@router.post(
    "/{client_order_id}/cancel",
    response={202: IntentOut, **documentation.problems(404, 422)},
    summary="Ask for a cancel, in any state; asking again changes nothing",
    operation_id="cancel_intent",
    openapi_extra=documentation.body(ReasonIn, required=False),
)
def cancel_intent(
    request: HttpRequest, client_order_id: str, account: Query[Name | None] = None
) -> Status[dict[str, Any]]:
    token = access.caller(request, Right.TRADE)
    form = parse(ReasonIn, read(request) if request.body else {})
    intent = _find(token, client_order_id, account)
    operate.cancel(intent.pk, actor=access.actor(token), reason=form.reason.strip())
    now = Intent.objects.select_related("account").get(pk=intent.pk)
    return Status(202, present.current(now))
