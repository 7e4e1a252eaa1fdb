"""The pages that show: board, market, intent, alerts. All of them live."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.templatetags.static import static
from django.utils.cache import add_never_cache_headers
from django.views.decorators.http import require_safe

from orders.clock import SYSTEM
from orders.models import Market
from orders.queries import intents, pages
from orders.roles import Right, rights_of
from orders.views.access import DeskRequest, needs


@require_safe
@needs(Right.VIEW)
def board(request: DeskRequest) -> HttpResponse:
    return live(request, "board.html", pages.board_page(SYSTEM.now()), "board")


@require_safe
@needs(Right.VIEW)
def market(request: DeskRequest, account: str, symbol: str) -> HttpResponse:
    market_id = find_market(account, symbol).pk
    page = pages.market_page(SYSTEM.now(), market_id)
    return live(request, "market.html", page, f"market?id={market_id}")


@require_safe
@needs(Right.VIEW)
def intent(request: DeskRequest, account: str, client_order_id: str) -> HttpResponse:
    found = intents.find(account, client_order_id)
    if found is None:
        raise Http404(f"There is no order {client_order_id} of account {account}.")
    page = pages.intent_page(SYSTEM.now(), found.pk)
    return live(request, "intent.html", page, f"intent?id={found.pk}")


@require_safe
@needs(Right.VIEW)
def alerts(request: DeskRequest) -> HttpResponse:
    return live(request, "alerts.html", pages.alerts_page(SYSTEM.now()), "alerts")


@require_safe
def favicon(request: HttpRequest) -> HttpResponse:
    """Browsers ask for it by this name where a page names no icon, as the API's do."""
    return redirect(static("favicon.svg"))


def find_market(account: str, symbol: str) -> Market:
    found = (
        Market.objects.select_related("account")
        .filter(account__name=account, symbol=symbol)
        .first()
    )
    if found is None:
        raise Http404(f"There is no market {symbol} of account {account}.")
    return found


def live(
    request: DeskRequest, template: str, page: pages.LivePage, socket: str, **more: Any
) -> HttpResponse:
    """Render a page that keeps itself up to date through /ws/SOCKET."""
    status = more.pop("http_status", 200)
    context = {
        "page": page,
        "status": page.status,
        "can": rights_of(request.role),
        "socket": f"/ws/{socket}",
        "now": SYSTEM.now(),
        **more,
    }
    response = render(request, template, context, status=status)
    add_never_cache_headers(response)  # going back must not show what was true before
    return response
