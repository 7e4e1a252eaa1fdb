"""What the pages show."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from orders import journal
from orders.clock import SYSTEM
from orders.journal import AlertDraft, Halt
from orders.live import pages as live_pages
from orders.machine import Event
from orders.models import Account, Intent, Market
from orders.queries import board, pages
from tests.journal.conftest import World, ago, trade

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]

PAGES = ("/", "/alerts/", "/markets/main/BTC/USDT/", "/ticket/")


def text_of(answer: Any) -> str:
    return answer.content.decode()  # type: ignore[no-any-return]


def states(answer: Any) -> list[tuple[str, str]]:
    """Symbol and state, in the order of the board."""
    rows = re.findall(
        r'<tr id="market-\d+" class="market (\w+)".*?-link" href[^>]*>([^<]+)<', text_of(answer)
    )
    return [(symbol, state) for state, symbol in rows]


def test_an_empty_desk_says_what_to_do_next(viewer: Client) -> None:
    page = text_of(viewer.get("/"))
    assert "Name accounts and their symbols in the account file" in page
    assert "No order yet" in page
    assert "NO ACCOUNT" in page


def test_problems_come_first_and_the_rest_keeps_its_order(world: World, viewer: Client) -> None:
    for symbol in ("ADA/USDT", "SOL/USDT"):
        Market.objects.create(account=world.account, symbol=symbol)
    sol = Market.objects.get(symbol="SOL/USDT")
    journal.halt(Halt(sol.pk, "drill"), actor="user:x", at=SYSTEM.now())
    intent = world.in_flight("ETH/USDT")
    world.step(intent, Event.NO_ANSWER, reason="no answer")
    assert states(viewer.get("/")) == [
        ("SOL/USDT", "HALTED"),
        ("ETH/USDT", "BLOCKED"),
        ("ADA/USDT", "OPEN"),
        ("BTC/USDT", "OPEN"),
    ]


def test_the_title_carries_the_trouble(world: World, viewer: Client) -> None:
    assert "<title>Board</title>" in text_of(viewer.get("/"))
    world.step(world.in_flight("ETH/USDT"), Event.NO_ANSWER)
    journal.halt(Halt(world.btc.pk, "drill"), actor="user:x", at=SYSTEM.now())
    page = text_of(viewer.get("/"))
    assert "<title>(1 HALTED, 1 BLOCKED, 1 alert) Board</title>" in page


def test_a_request_in_flight_blocks_only_when_its_time_is_over(world: World) -> None:
    intent = world.in_flight()
    (row,) = board.market_rows(SYSTEM.now(), [world.btc.pk])
    assert (row.state, row.in_flight, row.unresolved) == ("OPEN", 1, 0)
    later = SYSTEM.now() + timedelta(milliseconds=world.account.timeout_ms + 1)
    (row,) = board.market_rows(later, [world.btc.pk])
    assert (row.state, row.in_flight, row.unresolved) == ("BLOCKED", 1, 1)
    intent.refresh_from_db()
    assert row.oldest == intent.claimed_at
    assert board.status(later).blocked == 1


def test_the_oldest_doubt_is_named_by_when_it_began(world: World) -> None:
    first = world.step(world.in_flight(key="a"), Event.NO_ANSWER)
    Intent.objects.filter(pk=first.pk).update(doubt_since=ago(90))
    (row,) = board.market_rows(SYSTEM.now(), [world.btc.pk])
    first.refresh_from_db()
    assert row.oldest == first.doubt_since


def test_counts_position_and_last_order_are_shown(world: World, viewer: Client) -> None:
    done = world.step(world.in_flight(), Event.ACCEPTED)
    fills = (trade("t1", "0.4", "100"), trade("t2", "0.6", "101"))
    world.step(done, Event.FILLED, columns={"venue_filled": done.quantity}, fills=fills)
    world.submit(quantity="2.50", side="sell")
    (row,) = board.market_rows(SYSTEM.now(), [world.btc.pk])
    assert (row.waiting, row.in_flight, row.live, str(row.position)) == (1, 0, 0, "1")
    assert row.last is not None
    assert (row.last.side, row.last.state) == ("sell", "INTENT")
    page = text_of(viewer.get("/"))
    assert "sell 2.5" in page
    assert "100.6" in page  # the mean price of the fills


@pytest.mark.parametrize("markets", [10, 200])
def test_a_page_asks_the_same_number_of_questions_for_any_number_of_markets(
    markets: int, world: World, operator: Client, django_assert_num_queries: Any
) -> None:
    fill_desk(world, markets)
    # Session, user and role come first, then the page's top: accounts, doubt, alerts, halted,
    # unreachable.
    for path, most in {
        "/": 13,
        "/alerts/": 10,
        "/markets/main/BTC/USDT/": 18,
        "/ticket/": 9,
    }.items():
        operator.get(path)
        with django_assert_num_queries(most):
            assert operator.get(path).status_code == 200


def fill_desk(world: World, markets: int) -> None:
    """So many markets, each with two orders and every fifth one halted."""
    now = datetime.now(UTC)
    new = [
        Market(account=world.account, symbol=f"C{number:03}/USDT", base=f"C{number:03}")
        for number in range(markets - 2)
    ]
    Market.objects.bulk_create(new)
    for number, market in enumerate(Market.objects.all()):
        for _ in range(2 if number < 20 else 1):
            world.submit(market.symbol)
        if number % 5 == 0:
            journal.halt(Halt(market.pk, "drill"), actor="user:x", at=now)


def test_a_board_of_200_markets_is_a_small_page(world: World, viewer: Client) -> None:
    import gzip

    fill_desk(world, 200)
    assert len(gzip.compress(viewer.get("/").content)) < 100_000


def test_real_and_simulated_accounts_cannot_be_confused(world: World, viewer: Client) -> None:
    assert 'class="mode real"' in text_of(viewer.get("/"))
    assert ">REAL MONEY</strong>" in text_of(viewer.get("/"))
    Account.objects.filter(pk=world.account.pk).update(sandbox=True)
    for path in PAGES[:3]:
        page = text_of(viewer.get(path))
        assert ">SIMULATED</strong>" in page
        assert "mode real" not in page


def test_an_order_shows_its_steps_and_the_venues_words(world: World, viewer: Client) -> None:
    intent = world.step(
        world.in_flight(),
        Event.NO_ANSWER,
        reason="cut after 212 ms",
        evidence={"body": "<script>alert(1)</script>", "status": 503},
    )
    page = text_of(viewer.get(f"/intents/main/{intent.client_order_id}/"))
    assert "cut after 212 ms" in page
    assert "It is not sent again until the venue has proved" in page
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert" not in page
    assert [page.index(word) for word in ("no_answer", "claimed", "submitted")] == sorted(
        page.index(word) for word in ("no_answer", "claimed", "submitted")
    )


def test_an_order_in_doubt_does_not_stand_beside_an_open_market(
    world: World, viewer: Client
) -> None:
    doubtful = world.step(world.in_flight(), Event.NO_ANSWER)
    waiting = world.submit()
    elsewhere = world.submit("ETH/USDT")
    for intent, state in ((doubtful, "BLOCKED"), (waiting, "BLOCKED"), (elsewhere, "OPEN")):
        page = pages.intent_page(SYSTEM.now(), intent.pk)
        assert page.intent.market_state == state
    assert "BLOCKED</span></dd>" in text_of(viewer.get(f"/intents/main/{waiting.client_order_id}/"))


def test_an_open_page_of_an_order_follows_the_state_of_its_market(world: World) -> None:
    intent = world.submit()
    shown = pages.intent_page(SYSTEM.now(), intent.pk)
    journal.halt(Halt(world.btc.pk, "drill"), actor="user:x", at=SYSTEM.now())
    name = live_pages.PageName("intent", intent.pk)
    changes = live_pages.Changes(markets={world.btc.pk})
    after = live_pages.reload(name, shown, changes, shown.status, SYSTEM.now())
    assert isinstance(after, pages.IntentPage)
    assert (shown.intent.market_state, after.intent.market_state) == ("OPEN", "HALTED")


def test_a_halted_market_says_whether_it_can_be_resumed(world: World, viewer: Client) -> None:
    intent = world.step(world.in_flight(), Event.NO_ANSWER)
    journal.halt(Halt(world.btc.pk, "drill"), actor="user:x", at=SYSTEM.now())
    path = "/markets/main/BTC/USDT/"
    assert "Resuming is refused while 1 order here is unresolved." in text_of(viewer.get(path))
    world.step(intent, Event.ACCEPTED)
    assert "Nothing here is unresolved now." in text_of(viewer.get(path))


def test_a_market_is_found_by_its_encoded_and_its_plain_name(world: World, viewer: Client) -> None:
    for path in ("/markets/main/BTC%2FUSDT/", "/markets/main/BTC/USDT/"):
        assert "BTC/USDT" in text_of(viewer.get(path))
    answer = viewer.get("/markets/main/NOPE/USDT/")
    assert answer.status_code == 404
    assert "There is no market NOPE/USDT of account main." in text_of(answer)


def test_a_halted_market_stays_in_view_after_it_left_the_account_file(
    world: World, viewer: Client
) -> None:
    journal.halt(Halt(world.btc.pk, "drill"), actor="user:x", at=SYSTEM.now())
    Market.objects.update(active=False)
    assert states(viewer.get("/")) == [("BTC/USDT", "HALTED")]
    assert viewer.get("/markets/main/ETH/USDT/").status_code == 200


def test_an_acknowledged_alert_stays_until_it_is_resolved(world: World, viewer: Client) -> None:
    draft = AlertDraft("drift", "t1", "warning", "Numbers differ", "Compare them")
    alert = journal.raise_alert(draft, actor="lane:x", at=SYSTEM.now())
    assert "Numbers differ" in text_of(viewer.get("/"))
    journal.acknowledge(alert.pk, actor="user:ann", note="looking", at=SYSTEM.now())
    page = text_of(viewer.get("/alerts/"))
    assert "looking" in page
    assert "ACKNOWLEDGED" in page
    assert "Numbers differ" in text_of(viewer.get("/"))
    journal.resolve(alert.pk, actor="user:ann", reason="same again", at=SYSTEM.now())
    assert "Numbers differ" not in text_of(viewer.get("/"))
    assert "Numbers differ" in text_of(viewer.get("/alerts/"))


@pytest.mark.parametrize("path", [*PAGES, "/sign-in", "/nothing/here"])
def test_no_page_needs_what_the_browsers_rules_forbid(
    path: str, world: World, operator: Client
) -> None:
    client = Client() if path == "/sign-in" else operator
    answer = client.get(path)
    page = text_of(answer)
    assert "style=" not in page
    assert "<style" not in page
    assert not re.search(r"<script(?![^>]*\bsrc=)", page)
    assert not re.search(r"\son\w+=", page)
    assert not re.search(r'(?:src|href|action)="(?:https?:)?//', page)
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
