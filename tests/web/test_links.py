"""A desk that cannot send does not look calm; an order that nobody here decided is marked."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from orders import journal
from orders.clock import SYSTEM
from orders.journal import AlertDraft
from orders.live import pages as live_pages
from orders.live import regions
from orders.models import Account, Intent, Lease
from orders.queries import board, pages
from orders.roles import Role
from tests.journal.conftest import World, ago

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]

EVERY_PAGE = ("/", "/alerts/", "/markets/main/BTC/USDT/")


def text_of(answer: Any) -> str:
    return answer.content.decode()  # type: ignore[no-any-return]


def lease(world: World, **changes: Any) -> None:
    Lease.objects.filter(account=world.account).update(**changes)


def why(world: World) -> list[str]:
    return [row.why for row in board.status(SYSTEM.now()).cut_off]


def test_an_account_that_its_lane_holds_and_has_recovered_is_not_mentioned(
    world: World, viewer: Client
) -> None:
    assert why(world) == []
    assert "nothing is sent" not in text_of(viewer.get("/"))


def test_an_account_that_never_connected_is_named_on_every_page(
    world: World, viewer: Client
) -> None:
    lease(world, recovered_at=None, taken_at=ago(40))
    for path in EVERY_PAGE:
        page = text_of(viewer.get(path))
        assert "NOT CONNECTED" in page
        assert "main: nothing is sent, since" in page
    assert "<title>(1 NOT CONNECTED) Board</title>" in text_of(viewer.get("/"))


def test_an_unreachable_venue_is_named_with_what_it_said_until_it_answers(world: World) -> None:
    draft = AlertDraft(
        "venue_unreachable",
        "t",
        "critical",
        "main: no such symbol",
        "Check it",
        account_id=world.account.pk,
    )
    alert = journal.raise_alert(draft, actor="lane:x", at=SYSTEM.now())
    assert why(world) == ["main: no such symbol"]
    journal.acknowledge(alert.pk, actor="user:ann", note="looking", at=SYSTEM.now())
    assert why(world) == ["main: no such symbol"]
    journal.resolve(alert.pk, actor="lane:x", reason="it answers", at=SYSTEM.now())
    assert why(world) == []


def test_an_account_without_a_lane_is_named(world: World) -> None:
    lease(world, deadline=ago(30))
    assert why(world) == ["its lane is silent; is the desk running?"]
    lease(world, owner="", deadline=None)
    assert why(world) == ["no lane has taken it yet; after a start that takes seconds"]


def test_a_hand_over_from_lane_to_lane_raises_no_alarm(world: World) -> None:
    lease(world, owner="", deadline=ago(1))
    assert why(world) == []
    lease(world, owner="next", deadline=SYSTEM.now(), taken_at=ago(1), recovered_at=None)
    assert why(world) == []


def test_a_ban_is_shown_with_its_end(world: World) -> None:
    until = SYSTEM.now() + timedelta(minutes=5)
    Account.objects.update(limited_until=until)
    assert why(world) == [f"the venue limits or bans it until {until:%H:%M:%S} UTC"]
    assert board.status(until + timedelta(seconds=1)).cut_off[0].why.startswith("its lane is")


def test_an_account_that_left_the_file_is_not_missed(world: World) -> None:
    lease(world, deadline=ago(300))
    Account.objects.update(active=False)
    assert why(world) == []


def test_the_word_comes_and_goes_by_itself_on_an_open_page(world: World) -> None:
    calm = live_pages.regions(pages.board_page(SYSTEM.now()))
    later = pages.board_page(SYSTEM.now() + timedelta(seconds=30))
    [html] = [
        message
        for message in regions.changes(calm, live_pages.regions(later), Role.VIEWER)
        if 'id="cut-off"' in message
    ]
    assert "its lane is silent" in html
    [gone] = [
        message
        for message in regions.changes(live_pages.regions(later), calm, Role.VIEWER)
        if 'id="cut-off"' in message
    ]
    assert "its lane is silent" not in gone


def test_an_orphan_is_marked_in_lists_and_on_its_page(world: World, viewer: Client) -> None:
    intent = world.submit()
    places = ("/", "/markets/main/BTC/USDT/", f"/intents/main/{intent.client_order_id}/")
    for path in places:
        assert "ORPHAN" not in text_of(viewer.get(path))
    Intent.objects.filter(pk=intent.pk).update(orphan=True)
    for path in places:
        assert ">ORPHAN</span>" in text_of(viewer.get(path))
    assert "Who decided it is not known here" in text_of(viewer.get(places[-1]))


def test_the_audit_trail_leads_back_to_the_board(world: World, sign_in: Any) -> None:
    page = text_of(sign_in("administrator").get("/admin/"))
    assert '<a href="/">Back to the board</a>' in page
    assert "View site" not in page


def test_the_icon_is_found_where_browsers_look_for_it(client: Client) -> None:
    answer = client.get("/favicon.ico")
    assert answer.status_code == 302
    assert answer.headers["Location"].startswith("/static/favicon")
