"""One desk, one simulated venue and one Chromium; each test has a market of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.stack.conftest import Stack
from tests.support import chromium
from tests.support.desk import Desk
from tests.support.simulator import Simulator

PASSWORD = "correct horse battery"
ROLES = ("viewer", "trader", "operator", "administrator")
SYMBOLS = [f"T{number:02}/USDT" for number in range(1, 31)]
WITHIN_MS = 15_000

expect.set_options(timeout=WITHIN_MS)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = chromium.find() or chromium.install()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=chromium.ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    """Without the venue's pushes, so that doubt lasts long enough to be seen."""
    with (
        Simulator() as venue,
        Desk(
            venue.url,
            accounts={"main": SYMBOLS},
            timeout_ms=1000,
            request_expiry_ms=1500,
            # An order hidden for 2.5 s is in doubt until the look at 3.75 s.
            environment={"ORDERDESK_DOUBT_S": "6"},
            each={"main": {"stream": False}},
        ) as desk,
    ):
        desk.python(
            "from django.contrib.auth.models import Group, User\n"
            f"for name in {ROLES!r}:\n"
            f"    user = User.objects.create_user(name, password={PASSWORD!r})\n"
            "    user.groups.set([Group.objects.get(name=name)])\n"
            "User.objects.filter(username='administrator').update(is_staff=True)\n"
            "result = None"
        )
        yield Stack(desk, venue, "main")


@dataclass
class Watch:
    """What a page did that no page may do."""

    origin: str
    errors: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)

    def see(self, page: Page) -> None:
        page.on("console", lambda m: self.errors.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self._asked(request.url))
        page.on("websocket", lambda socket: self._asked(socket.url))

    def _asked(self, url: str) -> None:
        if urlsplit(url).scheme in ("http", "https", "ws", "wss") and (
            urlsplit(url).netloc != urlsplit(self.origin).netloc
        ):
            self.foreign.append(url)

    def forgive(self, *words: str) -> None:
        """Forget errors that the test itself provoked."""
        self.errors = [e for e in self.errors if not any(word in e for word in words)]


Opened = Callable[..., Page]


@pytest.fixture
def watch(stack: Stack) -> Watch:
    return Watch(stack.desk.url)


@pytest.fixture
def open_as(browser: Browser, stack: Stack, watch: Watch) -> Iterator[Opened]:
    """Signs in as somebody of a role, in a browser of their own, and opens a page.

    Afterwards no page may have logged an error, broken the browser's rules or asked elsewhere.
    """
    contexts: list[BrowserContext] = []

    def open_page(role: str, path: str = "/", **options: object) -> Page:
        context = browser.new_context(base_url=stack.desk.url, **options)  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        watch.see(page)
        page.goto(f"/sign-in?next={path}")
        page.get_by_label("Name").fill(role)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        wait_live(page)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert watch.errors == []
    assert watch.foreign == []


@pytest.fixture(autouse=True)
def calm(stack: Stack) -> Iterator[None]:
    yield
    stack.venue.clear_faults()


_symbols = iter(SYMBOLS)


@pytest.fixture
def symbol() -> str:
    """A market that no other test uses."""
    return next(_symbols)


def wait_live(page: Page) -> None:
    expect(page.locator("#freshness")).to_have_text("Up to date")
