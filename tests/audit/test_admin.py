"""The audit trail in the admin: all of it, read-only, and never counted."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from orders.models import Alert, ApiToken, Fill, Intent, Transition
from orders.roles import Role
from tests.audit.conftest import HOSTILE, add_orders, signed_in

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]

KINDS = ["account", "lease", "market", "intent", "transition", "fill", "alert", "apitoken"]


def address(kind: str, rest: str = "") -> str:
    return f"/admin/orders/{kind}/{rest}"


def first_pk(client: Client, kind: str) -> str:
    """Of the first row that the list shows."""
    page = client.get(address(kind)).content.decode()
    found = re.search(rf"/admin/orders/{kind}/(\d+)/change/", page)
    assert found, f"no {kind} is listed"
    return found[1]


@pytest.mark.parametrize("kind", KINDS)
def test_an_administrator_reads_every_kind_of_record(administrator: Client, kind: str) -> None:
    page = administrator.get(address(kind, f"{first_pk(administrator, kind)}/change/"))
    assert page.status_code == 200
    assert b'name="_save"' not in page.content


@pytest.mark.parametrize("superuser", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_nobody_adds_changes_or_deletes(administrator: Client, kind: str, superuser: bool) -> None:
    client = signed_in("root", None, superuser=True) if superuser else administrator
    pk = first_pk(client, kind)
    before = Transition.objects.count()
    for rest in ("add/", f"{pk}/change/", f"{pk}/delete/"):
        assert client.post(address(kind, rest), {"state": "OPEN", "post": "yes"}).status_code == 403
    client.post(address(kind), {"action": "delete_selected", "_selected_action": pk, "post": "yes"})
    assert first_pk(client, kind) == pk
    assert Transition.objects.count() == before


@pytest.mark.parametrize("role", [None, Role.VIEWER, Role.TRADER, Role.OPERATOR])
def test_others_are_turned_away(records: None, role: Role | None) -> None:
    client = signed_in("bob", role)
    assert client.get(address("transition"), follow=True).status_code == 403
    assert client.get("/admin/", follow=True).status_code == 403


def test_a_stranger_is_sent_to_the_desks_own_sign_in(records: None) -> None:
    response = Client().get(address("transition"))
    assert response.status_code == 302
    asked = Client().get(response["Location"])
    assert asked["Location"].startswith("/sign-in?next=")


@pytest.mark.parametrize("kind", ["transition", "intent", "fill", "alert"])
def test_no_list_counts_its_table_and_all_take_the_same_number_of_queries(
    administrator: Client, kind: str
) -> None:
    administrator.get(address(kind))
    with CaptureQueriesContext(connection) as few:
        administrator.get(address(kind))
    add_orders(60)
    with CaptureQueriesContext(connection) as many:
        assert administrator.get(address(kind)).status_code == 200
    assert len(many) == len(few) <= 10
    counting = [query["sql"] for query in many if "COUNT(" in query["sql"].upper()]
    assert counting == []


@pytest.mark.parametrize(
    ("kind", "field", "places"),
    [
        ("intent", "client_order_id", 1),
        ("intent", "venue_order_id", 1),
        ("intent", "strategy", 3),
        ("transition", "client_order_id", 6),
        ("transition", "venue_order_id", 6),
        ("transition", "strategy", 18),
        ("fill", "client_order_id", 1),
        ("alert", "client_order_id", 1),
    ],
)
def test_a_search_finds_what_an_id_or_a_strategy_names(
    administrator: Client, kind: str, field: str, places: int
) -> None:
    term = getattr(Intent.objects.order_by("pk")[1], field)
    page = administrator.get(address(kind), {"q": term}).content.decode()
    assert len(set(re.findall(rf"/admin/orders/{kind}/(\d+)/change/", page))) == places
    nothing = administrator.get(address(kind), {"q": "nothing such"}).content.decode()
    assert "/change/" not in nothing


@pytest.mark.parametrize(
    ("query", "shown"),
    [("q=lane:lane-1", 12), ("q=claimed", 3), ("event__exact=filled", 3)],
)
def test_the_journal_is_found_by_actor_and_event(
    administrator: Client, query: str, shown: int
) -> None:
    page = administrator.get(f"{address('transition')}?subject__exact=intent&{query}")
    found = set(re.findall(r"/admin/orders/transition/(\d+)/change/", page.content.decode()))
    assert len(found) == shown


def test_evidence_is_shown_whole_and_never_as_markup(administrator: Client) -> None:
    line = Transition.objects.filter(event="accepted").first()
    assert line
    page = administrator.get(address("transition", f"{line.pk}/change/")).content.decode()
    assert HOSTILE not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    alerts = administrator.get(address("alert")).content.decode()
    assert HOSTILE not in alerts


def test_the_digest_of_a_token_is_nowhere(administrator: Client) -> None:
    token = ApiToken.objects.get()
    for rest in ("", f"{token.pk}/change/"):
        page = administrator.get(address("apitoken", rest)).content.decode()
        assert token.name in page
        assert token.digest not in page


def test_an_intent_leads_to_its_journal(administrator: Client) -> None:
    intent = Intent.objects.latest("pk")
    page = administrator.get(address("intent", f"{intent.pk}/change/")).content.decode()
    assert f"{address('transition')}?q={intent.client_order_id}" in page
    assert (Fill.objects.count(), Alert.objects.count()) == (3, 3)
