"""The HTTP API, version 1: JSON over bearer tokens, described at /api/v1/docs."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any

from django.http import Http404, HttpRequest, HttpResponseBase
from django.urls import URLPattern, URLResolver, path
from ninja import NinjaAPI

from orders.api import alerts, documentation, intents, markets, problems, transitions
from orders.api.access import Bearer

View = Callable[..., Any]

_ABOUT = """
Numbers are text in decimal notation, instants ISO 8601 in UTC. Errors are
`application/problem+json` with a stable `code`. After a time-out, a lost connection or a 5xx send
the same request again: a decision has its effect once, however often it is submitted.
"""


class DeskApi(NinjaAPI):
    """Answers with a problem also where the framework itself would refuse."""

    def _get_urls(self) -> list[URLResolver | URLPattern]:
        patterns = super()._get_urls()
        patterns.append(path("<path:rest>", _nothing_here))
        for pattern in patterns:
            assert isinstance(pattern, URLPattern)
            pattern.callback = _finished(pattern.callback)
        return patterns

    def get_openapi_schema(self, **kwargs: Any) -> Any:
        return documentation.mark_problems(super().get_openapi_schema(**kwargs))


def _nothing_here(request: HttpRequest, rest: str) -> HttpResponseBase:
    raise Http404


def _finished(view: View) -> View:
    """The view, with problems for 404 and 405, and nothing left in caches."""

    @wraps(view)
    def finished(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            return _finish(request, view(request, *args, **kwargs))
        except Http404:
            return _finish(request, _missing(request))

    @wraps(view)
    async def finished_async(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return _finish(request, await view(request, *args, **kwargs))

    return finished_async if iscoroutinefunction(view) else finished


def _missing(request: HttpRequest) -> HttpResponseBase:
    detail = f"there is nothing at {request.path}; /api/v1/docs lists every call"
    return problems.of_status(404, detail).as_response()


def _finish(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    if response.status_code == 405:
        allowed = response.headers["Allow"]
        detail = f"{request.method} is not possible here; {allowed} is"
        response = problems.of_status(405, detail).as_response()
        response["Allow"] = allowed
    response.setdefault("Cache-Control", "no-store")
    return response


api = DeskApi(
    title="orderdesk",
    version="1",
    description=_ABOUT,
    urls_namespace="api",
    auth=Bearer(),
)
problems.install(api)
api.add_router("intents", intents.router)
api.add_router("markets", markets.router)
api.add_router("alerts", alerts.router)
api.add_router("transitions", transitions.router)
