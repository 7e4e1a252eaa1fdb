"""What people do in the browser: the server decides and says what came of it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.messages import get_messages
from django.test import Client

from orders import journal
from orders.journal import AlertDraft, Halt
from orders.machine import Event
from orders.models import Transition
from tests.journal.conftest import World

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]

BTC = "/markets/main/BTC/USDT"
HTMX = {"HX-Request": "true"}


def said(answer: Any) -> str:
    return " ".join(str(message) for message in get_messages(answer.wsgi_request))


def last() -> Transition:
    line = Transition.objects.order_by("-pk").filter(subject="market").first()
    assert line is not None
    return line


def test_a_halt_is_journaled_with_the_person_and_the_reason(world: World, operator: Client) -> None:
    answer = operator.post(f"{BTC}/halt", {"reason": "venue looks odd"})
    assert answer.headers["Location"] == f"{BTC}/"
    assert said(answer) == "main BTC/USDT is HALTED"
    world.btc.refresh_from_db()
    assert world.btc.state == "HALTED"
    assert (last().event, last().actor) == ("halted", "user:operator")
    assert "venue looks odd" in last().reason


@pytest.mark.parametrize("verb", ["halt", "resume"])
@pytest.mark.parametrize("reason", ["", "   ", "x" * 2001])
def test_without_a_reason_nothing_happens(
    verb: str, reason: str, world: World, operator: Client
) -> None:
    if verb == "resume":
        journal.halt(Halt(world.btc.pk, "drill"), actor="user:x", at=datetime.now(UTC))
    before = Transition.objects.count()
    answer = operator.post(f"{BTC}/{verb}", {"reason": reason})
    assert answer.status_code == 422
    page = answer.content.decode()
    assert "Say why" in page or "at most 2000" in page
    assert Transition.objects.count() == before


def test_resuming_while_something_is_unresolved_is_refused_and_names_it(
    world: World, operator: Client
) -> None:
    intent = world.step(world.in_flight(), Event.NO_ANSWER)
    journal.halt(Halt(world.btc.pk, "cap"), actor="lane:x", at=datetime.now(UTC))
    answer = operator.post(f"{BTC}/resume", {"reason": "I think it is fine"})
    page = answer.content.decode()
    assert answer.status_code == 409
    assert intent.client_order_id in page
    assert "can be resumed when nothing is unresolved" in page
    assert "I think it is fine" in page  # what was typed stays
    world.btc.refresh_from_db()
    assert world.btc.state == "HALTED"


def test_a_halted_market_is_resumed(world: World, operator: Client) -> None:
    operator.post(f"{BTC}/halt", {"reason": "drill"})
    answer = operator.post(f"{BTC}/resume", {"reason": "drill is over"})
    assert said(answer) == "main BTC/USDT is HALTED main BTC/USDT is OPEN"
    world.btc.refresh_from_db()
    assert world.btc.state == "OPEN"


def test_the_second_of_two_operators_is_told_what_the_first_did(
    world: World, operator: Client
) -> None:
    journal.halt(Halt(world.btc.pk, "seen by ann"), actor="user:ann", at=datetime.now(UTC))
    before = Transition.objects.count()
    answer = operator.post(f"{BTC}/halt", {"reason": "mine"})
    assert "HALTED already: seen by ann" in said(answer)
    assert Transition.objects.count() == before


def test_reconciling_needs_no_reason_and_asks_the_lane(world: World, operator: Client) -> None:
    assert operator.post(f"{BTC}/reconcile", {"reason": ""}).status_code == 302
    world.btc.refresh_from_db()
    assert world.btc.look_requested_at is not None
    assert last().event == "reconcile_requested"


def test_in_a_dialog_the_answer_is_a_short_word_and_no_page(world: World, operator: Client) -> None:
    form = operator.get(f"{BTC}/halt", headers=HTMX).content.decode()
    assert form.startswith("<form")
    refused = operator.post(f"{BTC}/halt", {"reason": ""}, headers=HTMX)
    assert refused.status_code == 422
    assert refused.content.decode().startswith("<form")
    done = operator.post(f"{BTC}/halt", {"reason": "drill"}, headers=HTMX)
    assert done.status_code == 204
    assert json.loads(done.headers["HX-Trigger"]) == {"acted": {"said": "main BTC/USDT is HALTED"}}


def test_a_waiting_order_is_canceled_at_once(world: World, trader: Client) -> None:
    intent = world.submit()
    answer = trader.post(f"/intents/main/{intent.client_order_id}/cancel", {"reason": ""})
    assert said(answer) == "CANCELED: it was never sent"
    intent.refresh_from_db()
    assert intent.state == "CANCELED"


def test_a_cancel_in_doubt_stays_in_doubt(world: World, trader: Client) -> None:
    intent = world.step(world.in_flight(), Event.NO_ANSWER)
    answer = trader.post(f"/intents/main/{intent.client_order_id}/cancel", {"reason": "enough"})
    assert "the order is UNKNOWN until the venue says more" in said(answer)
    intent.refresh_from_db()
    assert (intent.state, intent.cancel_requested_by) == ("UNKNOWN", "user:trader")


def test_a_cancel_after_the_end_says_so(world: World, trader: Client) -> None:
    intent = world.step(world.in_flight(), Event.REJECTED, reason="no balance")
    answer = trader.post(f"/intents/main/{intent.client_order_id}/cancel", {})
    assert "REJECTED already" in said(answer)


def test_an_alert_that_is_over_cannot_be_acknowledged(world: World, operator: Client) -> None:
    draft = AlertDraft("drift", "t", "warning", "Numbers differ", "Look")
    alert = journal.raise_alert(draft, actor="lane:x", at=datetime.now(UTC))
    journal.resolve(alert.pk, actor="lane:x", reason="equal again", at=datetime.now(UTC))
    answer = operator.post(f"/alerts/{alert.pk}/acknowledge", {"reason": "on it"})
    assert answer.status_code == 409
    assert "resolved already" in answer.content.decode()
