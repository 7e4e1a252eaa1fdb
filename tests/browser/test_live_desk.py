"""A person watches and steers a running desk, with a venue that misbehaves."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.browser.conftest import SYMBOLS, Opened, Watch, wait_live
from tests.stack.conftest import Stack, wire
from tests.support import simulator as faults

SEEN_JS = """(selector) => {
    // Every state that the element shows from now on, in order.
    window.seen = [];
    const note = () => {
        const chip = document.querySelector(selector + " .chip");
        const word = chip && chip.textContent.replace(/[^A-Z ]/g, "").trim();
        if (word && window.seen.at(-1) !== word) window.seen.push(word);
    };
    note();
    new MutationObserver(note).observe(document.body, {childList: true, subtree: true});
}"""


def market_row(page: Page, symbol: str) -> Locator:
    return page.locator("#markets tr", has=page.get_by_role("link", name=symbol, exact=True))


def latest_row(page: Page, name: str) -> Locator:
    return page.locator("#latest tr", has=page.locator(f'a[href$="/{name}/"]'))


def lose_answer(stack: Stack, symbol: str, hidden_s: float = 1.5) -> None:
    """The next order is executed, its answer is lost, and look-ups do not show it for a while."""
    stack.venue.faults(
        faults.lost_answer(symbol=wire(symbol)),
        faults.hidden(
            "query", "open_orders", "all_orders", "trades", for_s=hidden_s, symbol=wire(symbol)
        ),
    )


def test_an_order_appears_and_goes_to_filled_while_the_board_is_open(
    stack: Stack, symbol: str, open_as: Opened
) -> None:
    page = open_as("viewer")
    name = stack.submit(symbol)
    expect(latest_row(page, name).locator(".chip")).to_have_text("✔FILLED")
    expect(market_row(page, symbol).locator("td").nth(9)).to_have_text(f"1 {symbol[:3]}")


def test_an_order_goes_unknown_and_comes_back_as_filled(
    stack: Stack, symbol: str, open_as: Opened
) -> None:
    lose_answer(stack, symbol, 2.5)
    board = open_as("viewer")
    name = stack.submit(symbol)
    order = open_as("viewer", f"/intents/main/{name}/")
    order.evaluate(SEEN_JS, "#intent")
    expect(market_row(board, symbol)).to_contain_text("BLOCKED")
    expect(board).to_have_title("(1 BLOCKED) Board")
    expect(market_row(board, symbol).locator("td").nth(4)).to_have_text("1")
    expect(order.locator("#intent .headline")).to_contain_text("FILLED")
    seen = order.evaluate("window.seen")
    assert seen[0] in ("UNKNOWN", "RECONCILING")
    assert seen[-1] == "FILLED"
    expect(market_row(board, symbol)).to_contain_text("OPEN")
    expect(board).to_have_title("Board")
    journal = order.locator("#journal")
    for event in ("no_answer", "reconcile_started", "found", "filled"):
        expect(journal.get_by_role("cell", name=event, exact=True).first).to_be_visible()
    assert len(stack.orders(name)) == 1


def test_a_market_that_cannot_be_settled_halts_and_is_resumed_by_hand(
    stack: Stack, symbol: str, open_as: Opened, watch: Watch
) -> None:
    stack.venue.faults(
        faults.lost_answer(symbol=wire(symbol)),
        *[
            faults.answered(path=path, status=500, body="{}", symbol=wire(symbol), for_s=12)
            for path in ("query", "open_orders", "all_orders", "trades")
        ],
    )
    page = open_as("operator")
    name = stack.submit(symbol)
    expect(market_row(page, symbol)).to_contain_text("HALTED")
    alert = page.locator("#alerts li", has_text=symbol)
    expect(alert).to_contain_text("is halted")

    # Too early: refused, with the order that stands in the way.
    market_row(page, symbol).get_by_role("link", name="Resume").click()
    page.get_by_label("Why it is safe").fill("it looks fine")
    page.get_by_role("dialog").get_by_role("button", name=f"Resume {symbol}").click()
    expect(page.get_by_role("dialog")).to_contain_text(name)
    expect(page.get_by_label("Why it is safe")).to_have_value("it looks fine")
    page.get_by_role("link", name="Keep as it is").click()
    watch.forgive("409")

    alert.get_by_role("link", name="Acknowledge").click()
    page.get_by_label("Note").fill("looking after it")
    page.get_by_role("dialog").get_by_role("button", name="Acknowledge").click()
    expect(alert).to_contain_text("looking after it")

    stack.wait(name, "FILLED", within_s=30)
    market_row(page, symbol).get_by_role("link", name="Reconcile").click()
    page.get_by_role("dialog").get_by_role("button", name=f"Reconcile {symbol}").click()
    expect(page.locator("#said")).to_contain_text("Look-up asked")
    market_row(page, symbol).get_by_role("link", name="Resume").click()
    page.get_by_label("Why it is safe").fill("the order is found and filled")
    page.get_by_role("dialog").get_by_role("button", name=f"Resume {symbol}").click()
    expect(page.locator("#said")).to_contain_text(f"{symbol} is OPEN")
    expect(market_row(page, symbol)).to_contain_text("OPEN")
    expect(alert).to_have_count(0)
    assert len(stack.orders(name)) == 1


def test_halt_and_resume_by_hand(stack: Stack, symbol: str, open_as: Opened) -> None:
    page = open_as("operator", f"/markets/main/{symbol}/")
    page.locator("#market").get_by_role("link", name="Halt").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Why")).to_be_focused()
    dialog.get_by_label("Why").fill("drill")
    dialog.get_by_role("button", name=f"Halt {symbol}").click()
    expect(dialog).to_be_hidden()
    expect(page.locator("#market")).to_contain_text("HALTED")
    expect(page.locator("#market")).to_contain_text("drill (by user:operator)")
    name = stack.call("POST", "intents", stack.decision(symbol)).body["client_order_id"]
    assert stack.intent(name)["state"] == "DENIED"
    page.locator("#market").get_by_role("link", name="Resume").click()
    page.get_by_label("Why it is safe").fill("drill is over")
    page.get_by_role("dialog").get_by_role("button", name=f"Resume {symbol}").click()
    expect(page.locator("#market")).to_contain_text("OPEN")


def test_halting_works_without_javascript(stack: Stack, symbol: str, browser: Any) -> None:
    from tests.browser.conftest import PASSWORD

    page = browser.new_context(base_url=stack.desk.url, java_script_enabled=False).new_page()
    page.goto(f"/sign-in?next=/markets/main/{symbol}/")
    page.get_by_label("Name").fill("operator")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("link", name="Halt", exact=True).click()
    page.get_by_label("Why").fill("no scripts here")
    page.get_by_role("button", name=f"Halt {symbol}").click()
    expect(page.locator("#said")).to_contain_text(f"{symbol} is HALTED")
    expect(page.locator("#market")).to_contain_text("no scripts here")
    page.get_by_role("link", name="Resume", exact=True).click()
    page.get_by_label("Why it is safe").fill("done")
    page.get_by_role("button", name=f"Resume {symbol}").click()
    expect(page.locator("#said")).to_contain_text("is OPEN")
    page.context.close()


def test_a_second_click_after_a_lost_answer_shows_the_first_order(
    stack: Stack, symbol: str, open_as: Opened, watch: Watch
) -> None:
    page = open_as("trader", "/ticket/")
    fill_in(page, symbol)
    arrived: list[int] = []

    def lose_first(route: Route) -> None:
        if route.request.method == "POST" and not arrived:
            arrived.append(route.fetch(max_redirects=0).status)
            route.abort("aborted")
        else:
            route.continue_()

    page.route("**/ticket/", lose_first)
    page.get_by_role("button", name="Send order").click(no_wait_after=True)
    while not arrived:
        page.wait_for_event("requestfailed", timeout=10_000)
    assert arrived == [302]
    page.get_by_role("button", name="Send order").click()
    expect(page.locator("#intent .headline")).to_contain_text("FILLED")
    watch.forgive("ERR_ABORTED")
    assert len(stack.venue.ledger(symbol=wire(symbol))["orders"]) == 1


def fill_in(page: Page, symbol: str) -> None:
    """A market order to buy 2."""
    page.get_by_label("Market", exact=True).first.select_option(
        label=f"main · {symbol} · REAL MONEY"
    )
    page.get_by_label("Buy").check()
    page.get_by_role("radio", name="Market").check()
    page.get_by_label("Quantity").fill("2")


def test_a_double_click_on_the_ticket_is_one_order(
    stack: Stack, symbol: str, open_as: Opened
) -> None:
    page = open_as("trader", "/ticket/")
    fill_in(page, symbol)
    page.get_by_role("button", name="Send order").dblclick()
    expect(page.locator("#intent .headline")).to_contain_text("FILLED")
    page.reload()
    page.go_back()
    rows = stack.call("GET", f"intents?symbol={symbol.replace('/', '%2F')}").body["items"]
    assert len(rows) == 1
    assert rows[0]["strategy"] == "manual"
    assert len(stack.venue.ledger(symbol=wire(symbol))["orders"]) == 1


def test_sending_again_after_going_back_places_no_second_order(
    stack: Stack, symbol: str, open_as: Opened, watch: Watch
) -> None:
    page = open_as("trader", "/ticket/")
    page.get_by_label("Market", exact=True).first.select_option(
        label=f"main · {symbol} · REAL MONEY"
    )
    page.get_by_label("Sell").check()
    page.get_by_label("Quantity").fill("1")
    page.get_by_label("Price").fill("1000000")
    page.get_by_role("button", name="Send order").click()
    expect(page.locator("#intent .headline")).to_contain_text("LIVE")
    result = page.url
    page.go_back()
    page.get_by_role("button", name="Send order").click()
    # The same ticket shows its order; a new one is blank and says so.
    expect(page.locator("#intent, p.error").first).to_be_visible()
    watch.forgive("422")
    assert len(stack.venue.ledger(symbol=wire(symbol))["orders"]) == 1
    page.goto(result)
    page.get_by_role("link", name="Cancel order").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel this order").click()
    expect(page.locator("#intent .headline")).to_contain_text("CANCELED")


def test_the_page_says_within_three_seconds_that_a_frozen_server_is_not_live(
    stack: Stack, symbol: str, open_as: Opened
) -> None:
    page = open_as("viewer")
    banner = page.locator("#stale")
    expect(banner).to_be_hidden()
    web = stack.desk.pid("web")
    os.kill(web, signal.SIGSTOP)
    try:
        page.wait_for_timeout(0)
        began = time.monotonic()
        expect(banner).to_be_visible(timeout=3000)
        assert time.monotonic() - began < 3.2
        expect(banner).to_contain_text("NOT UP TO DATE. What you see is from")
    finally:
        os.kill(web, signal.SIGCONT)
    expect(banner).to_be_hidden()
    wait_live(page)
    name = stack.submit(symbol)
    expect(latest_row(page, name)).to_contain_text("FILLED")


def test_after_a_reconnect_no_row_is_missing(
    stack: Stack, symbol: str, open_as: Opened, watch: Watch
) -> None:
    page = open_as("viewer")
    before = [stack.submit(symbol) for _ in range(2)]
    expect(latest_row(page, before[-1])).to_contain_text("FILLED")
    page.context.set_offline(True)
    web = stack.desk.pid("web")
    os.kill(web, signal.SIGKILL)  # the connection is gone; the supervisor starts another
    stack.desk.wait(lambda: stack.desk.pid("web") not in (0, web), "a new web process", 30)
    stack.desk.wait(stack.desk.is_ready, "ready again", 30)
    expect(page.locator("#stale")).to_be_visible()
    missed = [stack.submit(symbol) for _ in range(5)]
    for name in missed:
        stack.wait(name, "FILLED")
    page.context.set_offline(False)
    for name in [*before, *missed]:
        expect(latest_row(page, name)).to_contain_text("FILLED")
    wait_live(page)
    expect(page.locator("#stale")).to_be_hidden()
    watch.forgive("WebSocket", "wsError", "ERR_", "[object Event]")


def test_after_many_changes_the_live_page_equals_a_new_one(
    stack: Stack, symbol: str, open_as: Opened
) -> None:
    others = SYMBOLS[-3:]
    live = open_as("operator")
    names = []
    for number in range(8):
        side = "buy" if number % 2 else "sell"
        decisions = [stack.decision(other, side=side) for other in others]
        answers = [stack.call("POST", "intents", decision) for decision in decisions]
        names += [answer.body["client_order_id"] for answer in answers]
        stack.act(others[number % 3], "halt" if number < 3 else "resume")
    for name in names:
        stack.wait(name)
    for other in others:
        stack.act(other, "resume")
    fresh = open_as("operator")
    for part in ("#markets tr", "#latest tr", "#alerts li", "#totals dd", "#status"):
        expected = shown(fresh, part)

        def equal(part: str = part, expected: list[str] = expected) -> bool:
            return shown(live, part) == expected

        stack.desk.wait(equal, f"{part} of the live page equals {expected}", 10)


def shown(page: Page, part: str) -> list[str]:
    """Every row with its id, without the ages, which go on."""
    without_ages = r"rows => rows.map(r => r.id + r.textContent.replace(/\d+ (s|min)\b/g, ''))"
    texts: list[str] = page.locator(part).evaluate_all(without_ages)
    return texts


def test_what_is_typed_and_where_the_focus_is_survive_live_updates(
    stack: Stack, symbol: str, open_as: Opened
) -> None:
    page = open_as("operator")
    link = market_row(page, symbol).get_by_role("link", name="Reconcile")
    link.focus()
    name = stack.submit(symbol)
    expect(latest_row(page, name)).to_contain_text("FILLED")
    expect(market_row(page, symbol)).to_contain_text("FILLED")
    expect(link).to_be_focused()
    market_row(page, symbol).get_by_role("link", name="Halt").click()
    page.get_by_label("Why").fill("half a sent")
    other = stack.submit(symbol)
    expect(latest_row(page, other)).to_contain_text("FILLED")
    expect(page.get_by_label("Why")).to_have_value("half a sent")
    expect(page.get_by_label("Why")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(market_row(page, symbol).get_by_role("link", name="Halt")).to_be_focused()


def test_times_age_by_themselves(stack: Stack, symbol: str, open_as: Opened) -> None:
    page = open_as("viewer")
    name = stack.submit(symbol)
    expect(latest_row(page, name)).to_contain_text("FILLED")
    changed = latest_row(page, name).locator("time.age")
    ages = [_seconds(changed.inner_text())]
    for _ in range(2):
        expect(changed).not_to_have_text(f"{ages[-1]} s")
        ages.append(_seconds(changed.inner_text()))
    assert ages == sorted(set(ages))


def _seconds(age: str) -> int:
    """The number in "12 s"."""
    number, unit = age.split()
    assert unit == "s"
    return int(number)


def test_signing_out_elsewhere_ends_the_open_page(stack: Stack, open_as: Opened) -> None:
    page = open_as("viewer")
    other = page.context.new_page()
    other.goto("/")
    other.get_by_role("button", name="Sign out").click()
    page.reload()
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()


@pytest.mark.parametrize("role", ["viewer", "administrator"])
def test_no_page_breaks_the_browsers_rules_or_logs_an_error(
    role: str, stack: Stack, symbol: str, open_as: Opened
) -> None:
    name = stack.submit(symbol)
    page = open_as(role)
    paths = ["/alerts/", f"/markets/main/{symbol}/", f"/intents/main/{name}/"]
    if role == "administrator":
        paths += ["/ticket/", f"/ticket/main/{name}/", f"/markets/main/{symbol}/halt"]
    for path in paths:
        page.goto(path)
        wait_live(page)
    page.get_by_role("button", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_an_id_is_copied_whole_by_one_click(stack: Stack, symbol: str, open_as: Opened) -> None:
    page = open_as("viewer", permissions=["clipboard-read", "clipboard-write"])
    name = stack.submit(symbol)
    expect(latest_row(page, name)).to_contain_text("FILLED")  # no later change redraws the row
    latest_row(page, name).get_by_role("button", name="Copy").click()
    expect(latest_row(page, name).locator("button.copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == name
