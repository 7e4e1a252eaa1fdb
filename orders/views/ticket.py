"""The ticket: an order by hand. However often it is sent, it is one order."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_safe

from orders.clock import SYSTEM
from orders.forms import TicketForm
from orders.intake import DecisionError, KeyReusedError, submit
from orders.queries import intents, pages
from orders.roles import Right
from orders.views.access import DeskRequest, actor_of, needs
from orders.views.board import live


@require_http_methods(["GET", "POST"])
@needs(Right.TRADE)
def ticket(request: DeskRequest) -> HttpResponse:
    if request.method == "GET":
        start = {**TicketForm.fresh(), "market": request.GET.get("market", "")}
        return _show(request, TicketForm(initial=start), 200)
    form = TicketForm(request.POST)
    if not form.is_valid():
        return _show(request, form, 422)
    try:
        placed = submit(form.decision(), actor=actor_of(request))
    except KeyReusedError as error:
        form.refuse(error)
        return _show(request, form, 409, used=True)
    except DecisionError as error:
        form.refuse(error)
        if error.code == "stale":  # nothing was recorded under this key
            messages.warning(request, "Nothing was sent: the ticket was too old. Send it again.")
            form.renew()
        return _show(request, form, 422)
    return redirect("ticket-placed", placed.account.name, placed.client_order_id)


@require_safe
@needs(Right.TRADE)
def placed(request: DeskRequest, account: str, client_order_id: str) -> HttpResponse:
    """What became of a ticket, live. A reload shows it again and sends nothing."""
    intent = intents.find(account, client_order_id)
    if intent is None:
        raise Http404(f"There is no order {client_order_id} of account {account}.")
    page = pages.intent_page(SYSTEM.now(), intent.pk)
    start = {**TicketForm.fresh(), "market": intent.market_id}
    return live(
        request,
        "ticket.html",
        page,
        f"intent?id={intent.pk}",
        form=TicketForm(initial=start),
        placed=True,
    )


def _show(
    request: DeskRequest, form: TicketForm, status: int, *, used: bool = False
) -> HttpResponse:
    page = pages.plain_page(SYSTEM.now())
    return live(request, "ticket.html", page, "desk", form=form, used=used, http_status=status)
