"""What people do to markets, alerts and orders. A form asks why; the server decides; it says what
came of it. Works without JavaScript as a page of its own, and in a dialog with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods
from django_htmx.http import trigger_client_event

from orders import operate
from orders.clock import SYSTEM
from orders.forms import ReasonForm
from orders.journal import AlertGoneError
from orders.machine import AlertState, MarketState, State
from orders.models import Market
from orders.operate import ReasonError, RefusedError
from orders.queries import alerts, intents, pages
from orders.roles import Right
from orders.views.access import DeskRequest, actor_of, needs
from orders.views.board import find_market, live


@dataclass(frozen=True, slots=True)
class Asked:
    """An act before it is done: its words, and where to go afterwards."""

    title: str
    what: str  # what it will do
    button: str
    label: str  # of the reason
    back: str
    grave: bool = False
    reason_needed: bool = True


@require_http_methods(["GET", "POST"])
@needs(Right.OPERATE)
def halt(request: DeskRequest, account: str, symbol: str) -> HttpResponse:
    market = find_market(account, symbol)
    asked = Asked(
        title=f"Halt {account} {symbol}",
        what="Stops placing in this market. Waiting orders are denied. Orders that are at the "
        "venue stay there and are still tracked.",
        button=f"Halt {symbol}",
        label="Why",
        back=_market_url(market),
        grave=True,
    )

    def act(reason: str) -> str:
        if market.state == MarketState.HALTED:
            return f"{symbol} was HALTED already: {market.halted_reason}"
        operate.halt(market.pk, actor=actor_of(request), reason=reason)
        return f"{account} {symbol} is HALTED"

    return _act(request, asked, act)


@require_http_methods(["GET", "POST"])
@needs(Right.OPERATE)
def resume(request: DeskRequest, account: str, symbol: str) -> HttpResponse:
    market = find_market(account, symbol)
    asked = Asked(
        title=f"Resume {account} {symbol}",
        what="Lets this market place orders again. Refused while anything here is unresolved.",
        button=f"Resume {symbol}",
        label="Why it is safe",
        back=_market_url(market),
    )

    def act(reason: str) -> str:
        if market.state == MarketState.OPEN:
            return f"{symbol} was OPEN already; nothing changed"
        operate.resume(market.pk, actor=actor_of(request), reason=reason)
        return f"{account} {symbol} is OPEN"

    return _act(request, asked, act)


@require_http_methods(["GET", "POST"])
@needs(Right.OPERATE)
def reconcile(request: DeskRequest, account: str, symbol: str) -> HttpResponse:
    market = find_market(account, symbol)
    asked = Asked(
        title=f"Reconcile {account} {symbol}",
        what="Asks the venue now about everything unresolved in this market. Places nothing.",
        button=f"Reconcile {symbol}",
        label="Why",
        back=_market_url(market),
        reason_needed=False,
    )

    def act(reason: str) -> str:
        operate.reconcile(market.pk, actor=actor_of(request), reason=reason)
        return f"Look-up asked for {account} {symbol}; what it finds shows in the journal"

    return _act(request, asked, act)


@require_http_methods(["GET", "POST"])
@needs(Right.OPERATE)
def acknowledge(request: DeskRequest, alert_id: int) -> HttpResponse:
    alert = alerts.find(alert_id)
    if alert is None:
        raise Http404(f"There is no alert {alert_id}.")
    asked = Asked(
        title=f"Acknowledge: {alert.title}",
        what=f"{alert.message}. Says that you look after it. It stays until it is resolved.",
        button="Acknowledge",
        label="Note: what you do about it",
        back=reverse("alerts"),
    )

    def act(reason: str) -> str:
        if alert.state == AlertState.ACKNOWLEDGED:
            return f"Acknowledged already by {alert.acknowledged_by}: {alert.note}"
        operate.acknowledge(alert_id, actor=actor_of(request), note=reason)
        return f"Alert {alert_id} acknowledged; it stays until it is resolved"

    return _act(request, asked, act)


@require_http_methods(["GET", "POST"])
@needs(Right.TRADE)
def cancel(request: DeskRequest, account: str, client_order_id: str) -> HttpResponse:
    intent = intents.find(account, client_order_id)
    if intent is None:
        raise Http404(f"There is no order {client_order_id} of account {account}.")
    intent_id = intent.pk
    asked = Asked(
        title=f"Cancel {intent.side} {intent.symbol} of {account}",
        what="Asks for a cancel. Never sent: ended at once. Sent: the cancel goes to the venue, as "
        "often as it takes, and the state follows what the venue reports.",
        button="Cancel this order",
        label="Why",
        back=reverse("intent", args=[account, client_order_id]),
        reason_needed=False,
    )

    def act(reason: str) -> str:
        after = operate.cancel(intent_id, actor=actor_of(request), reason=reason)
        if after.state == State.CANCELED and not after.attempt:
            return "CANCELED: it was never sent"
        if after.cancel_requested_at is None:
            return f"The order is {after.state} already; nothing to cancel"
        return f"Cancel asked; the order is {after.state} until the venue says more"

    return _act(request, asked, act)


def _act(request: DeskRequest, asked: Asked, act: Callable[[str], str]) -> HttpResponse:
    if request.method == "GET":
        form = ReasonForm(label=asked.label, required=asked.reason_needed)
        return _show(request, asked, form, 200)
    form = ReasonForm(request.POST, label=asked.label, required=asked.reason_needed)
    if not form.is_valid():
        return _show(request, asked, form, 422)
    try:
        said = act(form.cleaned_data["reason"])
    except (RefusedError, AlertGoneError) as error:
        form.add_error(None, _sentence(str(error)))
        return _show(request, asked, form, 409)
    except ReasonError as error:
        form.add_error("reason", _sentence(str(error)))
        return _show(request, asked, form, 422)
    if request.htmx:
        return trigger_client_event(HttpResponse(status=204), "acted", {"said": said})
    messages.success(request, said)
    return redirect(asked.back)


def _show(request: DeskRequest, asked: Asked, form: ReasonForm, status: int) -> HttpResponse:
    if request.htmx:
        context = {"asked": asked, "form": form, "action": request.path}
        return render(request, "parts/act.html", context, status=status)
    page = pages.plain_page(SYSTEM.now())
    more = {"asked": asked, "form": form, "action": request.path, "http_status": status}
    return live(request, "act.html", page, "desk", **more)


def _market_url(market: Market) -> str:
    return reverse("market", args=[market.account.name, market.symbol])


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
