"""The journal in order, page by page or as a stream of events."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse
from ninja import Query, Router, Schema
from pydantic import Field

from orders.api import access, documentation, following, present
from orders.api.cursor import DEFAULT_LIMIT, MAX_ID, MAX_LIMIT
from orders.api.problems import invalid
from orders.api.schemas import TransitionsOut
from orders.models import ApiToken, Transition
from orders.queries import journal
from orders.roles import Right

router = Router(tags=["transitions"])

EVENT_STREAM = "text/event-stream"
KEEP_ALIVE_S = 5.0  # also how soon a revoked token ends its stream
LATE_ROW_S = 0.2  # how soon a missing number is asked for again
RECONNECT_MS = 1000


class After(Schema):
    after: int = Field(0, ge=0, le=MAX_ID, description="the last number that is known")
    limit: int = Field(DEFAULT_LIMIT, ge=1, le=MAX_LIMIT)


@router.get(
    "",
    response={200: TransitionsOut, **documentation.problems(422, 503)},
    summary="Follow the journal: a page, or a stream with `Accept: text/event-stream`",
    operation_id="list_transitions",
    openapi_extra={
        "parameters": [documentation.LAST_EVENT_ID],
        "responses": {200: {"content": {EVENT_STREAM: {"schema": {"type": "string"}}}}},
    },
)
async def list_transitions(request: HttpRequest, where: Query[After]) -> Any:
    """Lines by rising number. A page stops before a number that may still appear; ask again from
    `next_after`. A stream sends a late number when it comes, and its event IDs say from where a
    reconnect loses nothing: a line may come twice then, and is told by its `id`.
    """
    token = access.caller(request, Right.VIEW)
    if EVENT_STREAM in request.headers.get("Accept", ""):
        after = _last_event_id(request, where.after)
        await following.get_ready()
        return _stream(token, after)
    return await sync_to_async(_page)(token, where.after, where.limit)


def _page(token: ApiToken, after: int, limit: int) -> dict[str, Any]:
    lines = journal.page(after, limit)
    return {
        "items": [present.transition(line) for line in lines if access.may_see(token, line)],
        "next_after": lines[-1].pk if lines else after,
    }


def _last_event_id(request: HttpRequest, after: int) -> int:
    text = request.headers.get("Last-Event-ID", "").strip()
    if not text:
        return after
    if not (text.isascii() and text.isdigit() and len(text) < 20) or int(text) > MAX_ID:
        raise invalid("Last-Event-ID", "is the number of a line, as a stream gave it")
    return int(text)


def _stream(token: ApiToken, after: int) -> HttpResponseBase:
    return StreamingHttpResponse(
        _events(token, after),
        content_type=EVENT_STREAM,
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _events(token: ApiToken, after: int) -> AsyncIterator[str]:
    """Until the client goes, the server stops, or the token is revoked."""
    reader = _Reader(token, after)
    with following.place():
        yield f"retry: {RECONNECT_MS}\n\n"
        while await following.read(reader.still_allowed):
            silent_until = time.monotonic() + KEEP_ALIVE_S
            while time.monotonic() < silent_until:
                seen = following.WAKEUPS.now()
                if events := await following.read(reader.read):
                    yield events
                if not reader.full:
                    await following.WAKEUPS.after(seen, reader.patience_s(silent_until))
            yield f": still here\nid: {reader.resume}\n\n"


class _Reader:
    """Reads the journal for one stream. `resume` is from where a reconnect would lose nothing."""

    def __init__(self, token: ApiToken, after: int) -> None:
        self._token = token
        self._tail = journal.Tail(after)
        self.resume = after
        self.full = False  # the last read may have left something behind

    def still_allowed(self) -> bool:
        return ApiToken.objects.filter(pk=self._token.pk, revoked_at=None).exists()

    def read(self) -> str:
        """What is new, as events; "" for nothing."""
        lines = self._tail.read()
        self.full = len(lines) >= journal.PAGE
        return "".join(self._event(line, last=line is lines[-1]) for line in lines)

    def patience_s(self, until: float) -> float:
        left = max(0.0, until - time.monotonic())
        return min(left, LATE_ROW_S) if self._tail.waits else left

    def _event(self, line: Transition, *, last: bool) -> str:
        """Only with the last line of a read is everything sent up to the highest number."""
        if line.pk == self.resume + 1:
            self.resume = line.pk
        if last and not self._tail.waits:
            self.resume = self._tail.after
        if not access.may_see(self._token, line):
            return ""
        data = json.dumps(present.transition(line), separators=(",", ":"))
        return f"event: transition\nid: {self.resume}\ndata: {data}\n\n"
