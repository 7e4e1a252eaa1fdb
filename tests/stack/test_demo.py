"""`make run`: what a newcomer sees."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, OpenerDirector, Request, build_opener

import pytest

from tests.support.desk import Desk, DeskError, processes_with

ROOT = Path(__file__).resolve().parents[2]
STOPS_WITHIN_S = 10
pytestmark = pytest.mark.timeout(180)


class Demo:
    """`manage.py desk --demo` on a folder of its own."""

    def __init__(self, data: Path, **environment: str) -> None:
        self.data = data
        self.log = data.with_suffix(".log")
        kept = {k: v for k, v in os.environ.items() if not k.startswith("ORDERDESK_")}
        kept.pop("DATABASE_URL", None)
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "desk", "--demo"],
                cwd=ROOT,
                env={
                    **kept,
                    "ORDERDESK_DATA": str(data),
                    "ORDERDESK_PORT": "0",
                    "DJANGO_SETTINGS_MODULE": "orderdesk.settings",
                    **environment,
                },
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def link(self) -> str:
        """The one-time link that it prints."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if "sesame=" in line:
                return line.strip()
        raise AssertionError(f"no link was printed\n{self.log.read_text()}")

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(STOPS_WITHIN_S)
        finally:
            self.process.kill()
            self.process.wait()
            if self.process.stdout is not None:
                self.process.stdout.close()


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    demo = Demo(tmp_path / "var")
    yield demo
    demo.stop()


# Orders that were found so many seconds after their answer was lost.
IN_DOUBT_FOR = (
    "SELECT f.intent_id FROM orders_transition f JOIN orders_transition n USING (intent_id)"
    " WHERE f.event = 'found' AND n.event = 'no_answer'"
    " AND (julianday(f.at) - julianday(n.at)) * 86400 >= {least_s}"
)


class Visitor:
    """A browser without JavaScript."""

    def __init__(self, link: str) -> None:
        self.cookies = CookieJar()
        self.opener: OpenerDirector = build_opener(HTTPCookieProcessor(self.cookies))
        self.address = link.partition("/sign-in")[0]

    def get(self, path: str) -> str:
        with self.opener.open(self.address + path, timeout=30) as answer:
            return str(answer.read().decode())

    def post(self, path: str, page: str, **fields: str) -> str:
        """Send a form whose token is on the page."""
        found = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
        assert found, page
        body = urlencode({**fields, "csrfmiddlewaretoken": found[1]}).encode()
        request = Request(self.address + path, body, {"Origin": self.address})
        with self.opener.open(request, timeout=30) as answer:
            return str(answer.read().decode())


def intents(demo: Demo, condition: str) -> int:
    """How many of the demo's intents fulfil an SQL condition."""
    path = f"file:{demo.data / 'db.sqlite3'}?mode=ro"
    with closing(sqlite3.connect(path, uri=True, timeout=20)) as journal:
        query = f"SELECT COUNT(*) FROM orders_intent WHERE {condition}"
        return int(journal.execute(query).fetchone()[0])


def wait_for(demo: Demo, what: str, condition: str, within_s: float = 60) -> None:
    deadline = time.monotonic() + within_s
    while not intents(demo, condition):
        if time.monotonic() > deadline:
            raise DeskError(f"not within {within_s:.0f} s: {what}\n{demo.log.read_text()[-5000:]}")
        time.sleep(0.1)


def test_the_link_signs_in_once_and_orders_reach_filled(demo: Demo) -> None:
    link = demo.link()
    visitor = Visitor(link)
    board = visitor.get(link.removeprefix(visitor.address))
    for symbol in ("BTC/USDT", "ETH/USDT", "SOL/USDT"):
        assert symbol in board
    wait_for(demo, "an order is filled", "state = 'FILLED'")
    with pytest.raises(HTTPError) as refused:
        Visitor(link).get(link.removeprefix(visitor.address))
    with refused.value as answer:
        assert answer.code == 403


def test_a_fault_injected_by_hand_is_met_and_resolved(demo: Demo) -> None:
    link = demo.link()
    visitor = Visitor(link)
    visitor.get(link.removeprefix(visitor.address))
    page = visitor.get("/demo/")
    for symbol in ("BTC/USDT", "ETH/USDT", "SOL/USDT"):
        page = visitor.post("/demo/faults", page, fault="lost_answer", symbol=symbol)
        assert f"Lose the answer: {symbol}" in page
    wait_for(
        demo,
        "an order was UNKNOWN and is FILLED all the same",
        f"state = 'FILLED' AND id IN ({IN_DOUBT_FOR.format(least_s=1)})",
        within_s=90,
    )


def test_a_hidden_order_blocks_its_market_for_seconds(demo: Demo) -> None:
    link = demo.link()
    visitor = Visitor(link)
    visitor.get(link.removeprefix(visitor.address))
    for symbol in ("BTC/USDT", "ETH/USDT", "SOL/USDT"):
        visitor.post("/demo/faults", visitor.get("/demo/"), fault="hidden", symbol=symbol)
    wait_for(demo, "an order is in doubt", "state = 'RECONCILING'")
    assert "BLOCKED</span></td>" in visitor.get("/")
    wait_for(
        demo,
        "it was looked for in vain for seconds, and found",
        f"state = 'FILLED' AND attempt = 1 AND id IN ({IN_DOUBT_FOR.format(least_s=3.5)})",
        within_s=90,
    )


def test_the_page_lists_what_is_still_to_come_and_not_what_has_happened(demo: Demo) -> None:
    link = demo.link()
    visitor = Visitor(link)
    visitor.get(link.removeprefix(visitor.address))
    page = visitor.post("/demo/faults", visitor.get("/demo/"), fault="refused", symbol="BTC/USDT")
    assert "<td>Refuse the order</td>" in page
    assert "waits for the market" in page
    page = visitor.post("/demo/faults", page, fault="unreachable", symbol="SOL/USDT")
    assert re.search(r"now, for (59|60) s more", page)
    wait_for(demo, "an order is refused", "state = 'REJECTED'", within_s=90)
    assert "<td>Refuse the order</td>" not in visitor.get("/demo/")


def test_faults_are_only_for_people_who_signed_in(demo: Demo) -> None:
    stranger = Visitor(demo.link())
    assert "password" in stranger.get("/demo/")  # the sign-in page


def test_a_second_start_begins_anew_and_keeps_the_old_journal(demo: Demo) -> None:
    demo.link()
    wait_for(demo, "an order is filled", "state = 'FILLED'")
    assert demo.stop() == 0
    assert processes_with(f"ORDERDESK_DATA={demo.data}") == {}
    again = Demo(demo.data)
    try:
        again.link()
        [aside] = (demo.data / "demo").glob("journal-*")
        assert (aside / "db.sqlite3").stat().st_size > 0
        wait_for(again, "an order is filled", "state = 'FILLED'")
        late = Demo(demo.data)
        with pytest.raises(AssertionError, match="another demo uses"):
            late.link()
        late.process.wait(STOPS_WITHIN_S)
        assert late.stop() != 0
    finally:
        again.stop()


def test_a_real_journal_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "var").mkdir()
    journal = tmp_path / "var" / "db.sqlite3"
    journal.write_bytes(b"a real one")
    demo = Demo(tmp_path / "var")
    with pytest.raises(AssertionError, match="is the journal of a real desk"):
        demo.link()
    demo.process.wait(STOPS_WITHIN_S)
    assert demo.stop() != 0
    assert journal.read_bytes() == b"a real one"


def test_a_demo_never_listens_beyond_loopback(tmp_path: Path) -> None:
    demo = Demo(tmp_path / "var", ORDERDESK_BIND="0.0.0.0")
    with pytest.raises(AssertionError, match="the demo runs on loopback only"):
        demo.link()
    demo.process.wait(STOPS_WITHIN_S)
    assert demo.stop() != 0


def test_a_real_desk_does_not_take_a_demo_for_its_journal(tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "made-by-demo").touch()
    (tmp_path / "db.sqlite3").touch()
    desk = Desk("http://127.0.0.1:9", environment={"ORDERDESK_DATA": str(tmp_path)})
    with pytest.raises(DeskError, match=r"holds a demo's journal.*ORDERDESK_DATA"), desk:
        pass
