"""The ticket: however often it is sent, it is one order."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from orders.models import Intent
from tests.journal.conftest import World

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]


def filled_in(client: Client, world: World, **changes: Any) -> dict[str, Any]:
    """A new ticket with good contents, as a browser would send it."""
    page = client.get("/ticket/").content.decode()
    hidden = dict(re.findall(r'name="(key|decided_at)" value="([^"]+)"', page))
    assert set(hidden) == {"key", "decided_at"}
    return {
        **hidden,
        "market": world.btc.pk,
        "side": "buy",
        "type": "limit",
        "quantity": "0.25",
        "price": "61 250.10",
        "time_in_force": "",
        "valid_for_s": "60",
        **changes,
    }


def test_a_ticket_becomes_an_intent_by_hand(world: World, trader: Client) -> None:
    answer = trader.post("/ticket/", filled_in(trader, world))
    intent = Intent.objects.get()
    assert answer.headers["Location"] == f"/ticket/main/{intent.client_order_id}/"
    assert (intent.strategy, intent.submitted_by, str(intent.price)) == (
        "manual",
        "user:trader",
        "61250.1",
    )
    page = trader.get(answer.headers["Location"]).content.decode()
    assert 'id="intent"' in page
    assert f"/ws/intent?id={intent.pk}" in page


def test_sent_twice_it_is_one_order(world: World, trader: Client) -> None:
    form = filled_in(trader, world)
    first, second = trader.post("/ticket/", form), trader.post("/ticket/", form)
    assert first.headers["Location"] == second.headers["Location"]
    assert Intent.objects.count() == 1


def test_two_tickets_with_the_same_contents_are_two_orders(world: World, trader: Client) -> None:
    for _ in range(2):
        trader.post("/ticket/", filled_in(trader, world))
    assert Intent.objects.count() == 2


def test_a_used_ticket_with_other_contents_is_refused(world: World, trader: Client) -> None:
    form = filled_in(trader, world)
    trader.post("/ticket/", form)
    answer = trader.post("/ticket/", {**form, "quantity": "9"})
    page = answer.content.decode()
    assert answer.status_code == 409
    assert "sent already, with other contents" in page
    assert "was &#x27;0.25&#x27;, is now &#x27;9&#x27;" in page
    assert Intent.objects.count() == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"market": ""}, "Choose the market"),
        ({"market": "99999"}, "Not a market here"),
        ({"side": ""}, "Choose buy or sell"),
        ({"quantity": ""}, "Say how much"),
        ({"quantity": "lots"}, "is not a decimal number"),
        ({"quantity": "1,5"}, "no comma"),
        ({"quantity": "-1"}, "Must be above zero"),
        ({"quantity": "NaN"}, "Must be above zero"),
        ({"price": ""}, "A limit order needs one"),
        ({"type": "market"}, "A market order takes none"),
        ({"type": "market", "price": "", "time_in_force": "IOC"}, "limit orders only"),
        ({"time_in_force": "IOC", "post_only": "on"}, "may rest"),
        ({"decided_at": "yesterday"}, "take a new one"),
    ],
)
def test_what_is_wrong_is_said_at_its_field_and_what_was_typed_stays(
    changes: dict[str, str], words: str, world: World, trader: Client
) -> None:
    answer = trader.post("/ticket/", filled_in(trader, world, **changes))
    page = answer.content.decode()
    assert answer.status_code == 422
    assert words in page
    assert f'value="{changes.get("quantity", "0.25")}"' in page or not changes.get("quantity", "x")
    assert Intent.objects.count() == 0


def test_everything_that_is_wrong_shows_at_once(world: World, trader: Client) -> None:
    wrong = {"quantity": "abc", "price": "", "side": "", "time_in_force": "FOK", "post_only": "on"}
    page = trader.post("/ticket/", filled_in(trader, world, **wrong)).content.decode()
    for words in (
        "Choose buy or sell.",
        "&#x27;abc&#x27; is not a decimal number.",
        "A limit order needs one.",
        "Is for limit orders that may rest (GTC).",
    ):
        assert page.count(words) == 1
    assert Intent.objects.count() == 0


@pytest.mark.parametrize(("kind", "price"), [("limit", "0.5"), ("market", "")])
def test_a_right_ticket_is_not_refused_for_what_was_left_out(
    kind: str, price: str, world: World, trader: Client
) -> None:
    form = filled_in(trader, world, type=kind, price=price)
    assert trader.post("/ticket/", form).status_code == 302


def test_a_ticket_that_lay_too_long_is_not_sent_and_can_be_sent_again(
    world: World, trader: Client
) -> None:
    old = (datetime.now(UTC) - timedelta(minutes=5)).isoformat()
    form = filled_in(trader, world, decided_at=old)
    answer = trader.post("/ticket/", form)
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "Nothing was sent" in page
    assert Intent.objects.count() == 0
    hidden = dict(re.findall(r'name="(key|decided_at)" value="([^"]+)"', page))
    assert hidden["key"] != form["key"]
    assert trader.post("/ticket/", {**form, **hidden}).status_code == 302
    assert Intent.objects.count() == 1


def test_a_ticket_for_a_halted_market_is_denied_on_the_record(
    world: World, trader: Client, operator: Client
) -> None:
    operator.post("/markets/main/BTC/USDT/halt", {"reason": "drill"})
    answer = trader.post("/ticket/", filled_in(trader, world))
    page = trader.get(answer.headers["Location"]).content.decode()
    assert Intent.objects.get().state == "DENIED"
    assert "market halted: drill" in page
