"""Alerts: seen by all, acknowledged by operators."""

from __future__ import annotations

from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Path, Query, Router, Schema
from pydantic import Field

from orders import operate
from orders.api import access, documentation, present
from orders.api.body import read
from orders.api.cursor import DEFAULT_LIMIT, MAX_ID, MAX_LIMIT, take
from orders.api.decisions import NoteIn, parse
from orders.api.problems import ProblemError, invalid, not_found
from orders.api.schemas import AlertOut, AlertsOut
from orders.journal import AlertGoneError
from orders.machine import AlertState
from orders.models import Alert, ApiToken
from orders.roles import Right

router = Router(tags=["alerts"])


class AlertFilter(Schema):
    state: list[AlertState] = Field([], description="one or more, e.g. state=OPEN")
    cursor: Annotated[str, Field(max_length=100)] | None = None
    limit: int = Field(DEFAULT_LIMIT, ge=1, le=MAX_LIMIT)


@router.get(
    "",
    response={200: AlertsOut, **documentation.problems(422)},
    summary="List alerts, newest first",
    operation_id="list_alerts",
)
def list_alerts(request: HttpRequest, filters: Query[AlertFilter]) -> dict[str, Any]:
    token = access.caller(request, Right.VIEW)
    rows = Alert.objects.filter(access.visible_alerts(token))
    if filters.state:
        rows = rows.filter(state__in=[state.value for state in filters.state])
    rows = rows.select_related("account", "market", "intent")
    page, following = take(rows, filters.cursor, filters.limit)
    return {"items": [present.alert(row) for row in page], "next": following}


@router.post(
    "/{id}/acknowledge",
    response={200: AlertOut, **documentation.problems(404, 409, 422)},
    summary="Say that somebody looks after it; it stays until it is resolved",
    operation_id="acknowledge_alert",
    openapi_extra=documentation.body(NoteIn),
)
def acknowledge_alert(
    request: HttpRequest, number: Annotated[int, Path(alias="id", ge=1, le=MAX_ID)]
) -> dict[str, Any]:
    token = access.caller(request, Right.OPERATE)
    alert = _find(token, number)
    if alert.intent_id is None:
        access.check_whole_market(token)
    form = parse(NoteIn, read(request) if request.body else {})
    try:
        operate.acknowledge(alert.pk, actor=access.actor(token), note=form.note)
    except operate.ReasonError as error:
        raise invalid("note", str(error)) from None
    except AlertGoneError as error:
        shown = present.alert(_find(token, number))
        raise ProblemError(409, "refused", str(error), alert=shown) from None
    return present.alert(_find(token, number))


def _find(token: ApiToken, number: int) -> Alert:
    rows = Alert.objects.filter(access.visible_alerts(token))
    found = rows.select_related("account", "market", "intent").filter(pk=number).first()
    if found is None:
        raise not_found(f"there is no alert {number}")
    return found
