"""A page to inject faults by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from orderdesk.demo import venue
from orders.roles import Right, allows, role_of


def _check(request: HttpRequest) -> None:
    if not allows(role_of(request.user), Right.OPERATE):
        raise PermissionDenied("faults are for operators")


@login_required
@require_GET
def page(request: HttpRequest) -> HttpResponse:
    _check(request)
    try:
        loaded, error = venue.loaded(), ""
    except venue.VenueError as problem:
        loaded, error = [], str(problem)
    context = {
        "faults": venue.FAULTS,
        "symbols": venue.SYMBOLS,
        "chosen": request.GET.get("symbol", venue.SYMBOLS[0]),
        "pending": [_told(fault) for fault in loaded if _is_pending(fault)],
        "error": error,
    }
    return render(request, "demo/page.html", context)


def _is_pending(loaded: dict[str, Any]) -> bool:
    """Whether it can still happen: once, or for as long as it lasts."""
    if (for_s := loaded["match"].get("for_s")) is not None:
        return bool(loaded["age_s"] < for_s)
    return not loaded["hits"]


def _told(loaded: dict[str, Any]) -> dict[str, object]:
    """A pending fault in words."""
    titles = [fault.title for fault in venue.FAULTS if fault.action == loaded["action"]]
    return {
        "title": titles[0] if titles else ", ".join(loaded["action"]),
        "symbol": loaded["match"].get("symbol", "all"),
        "age_s": round(loaded["age_s"]),
        "left_s": round(loaded["match"].get("for_s", 0) - loaded["age_s"]),
        "lasts": "for_s" in loaded["match"],
    }


@login_required
@require_POST
def inject(request: HttpRequest) -> HttpResponse:
    _check(request)
    fault = venue.BY_NAME.get(request.POST.get("fault", ""))
    symbol = request.POST.get("symbol", "")
    if fault is None or symbol not in venue.SYMBOLS:
        return HttpResponseBadRequest(
            f"fault must be one of {', '.join(venue.BY_NAME)}, symbol of {', '.join(venue.SYMBOLS)}"
        )
    return _do(request, lambda: venue.inject(fault, symbol), f"{fault.title}: {symbol}", symbol)


@login_required
@require_POST
def clear(request: HttpRequest) -> HttpResponse:
    _check(request)
    return _do(request, venue.clear, "All faults are cleared", request.POST.get("symbol", ""))


def _do(request: HttpRequest, act: Callable[[], None], done: str, symbol: str) -> HttpResponse:
    try:
        act()
        messages.success(request, done)
    except venue.VenueError as error:
        messages.error(request, str(error))
    answer = redirect("demo:page")
    if symbol in venue.SYMBOLS:
        answer["Location"] += f"?symbol={symbol}"
    return answer
