"""C, F7, F9: the venue, the clock, the database or the disk goes away, and comes back."""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import datetime, timedelta

import pytest

from tests.stack.conftest import DOUBT_S, EXPIRY_MS, SYMBOLS, TIMEOUT_MS, Stack, brisk, wire
from tests.support import postgres
from tests.support import simulator as faults
from tests.support.desk import Desk
from tests.support.simulator import Simulator

AWAY_S = 6.0  # longer than a lease, a time-out and an expiry
BAN_S = 6
pytestmark = pytest.mark.timeout(180)
Stacks = dict[str, Stack]


@pytest.fixture(scope="module")
def stacks() -> Iterator[Stacks]:
    """One desk, each account at a venue of its own."""
    names = ("net", "ban", "clock", "flood")
    with Simulator() as a, Simulator() as b, Simulator() as c, Simulator() as d:
        venues = dict(zip(names, (a, b, c, d), strict=True))
        with Desk(
            a.url,
            accounts=dict.fromkeys(names, SYMBOLS[:6]),
            timeout_ms=TIMEOUT_MS,
            request_expiry_ms=EXPIRY_MS,
            stream=False,
            environment={"ORDERDESK_DOUBT_S": str(DOUBT_S)},
            each={name: {"base_url": venue.url} for name, venue in venues.items()},
        ) as desk:
            yield {name: Stack(desk, venue, name) for name, venue in venues.items()}


@contextmanager
def frozen(*pids: int) -> Iterator[None]:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def test_c4_orders_that_were_known_are_all_tracked_after_an_outage(stacks: Stacks) -> None:
    stack = stacks["net"]
    names = [stack.submit(symbol, type="limit", price="90") for symbol in SYMBOLS[:6]]
    for name in names:
        stack.wait(name, "LIVE")
    with frozen(stack.venue.process.pid):
        during = stack.submit(SYMBOLS[0], valid_for_s=600)
        stack.wait(during, "UNKNOWN", "RECONCILING")
        time.sleep(AWAY_S)
        assert {stack.intent(name)["state"] for name in names} == {"LIVE"}
    for symbol, name in zip(SYMBOLS[:6], names, strict=True):
        stack.venue.fill(wire(symbol), client_order_id=name)
    for name in names:
        stack.wait(name, "FILLED")
        stack.check(name)
    stack.wait(during)  # sent again, or denied where its market was halted meanwhile
    stack.check(during)


def test_c5_a_ban_is_kept_to_the_end_and_then_look_ups_go_first(stacks: Stacks) -> None:
    stack = stacks["ban"]
    stack.venue.faults(
        faults.silent_answer(symbol=wire(SYMBOLS[0])),
        faults.fault("query", action={"rate_limit": {"status": 418, "retry_after_s": BAN_S}}),
    )
    doubtful = stack.submit(SYMBOLS[0])
    until = "SELECT limited_until FROM orders_account WHERE name = 'ban'"
    stack.desk.wait(lambda: stack.desk.sql(until) != [(None,)], "the ban is on record", 20)
    began, before = time.monotonic(), stack.venue.calls()
    waiting = stack.submit(SYMBOLS[1])
    time.sleep(BAN_S - 1.5)
    assert stack.venue.calls() == before, stack.venue.ledger()["calls"]
    assert stack.intent(doubtful)["state"] in ("UNKNOWN", "RECONCILING")
    assert stack.intent(waiting)["state"] == "INTENT"
    stack.wait(waiting, "FILLED")
    stack.wait(doubtful, "FILLED")
    assert time.monotonic() - began > BAN_S - 1
    assert stack.venue.calls() - before < 60, "a storm after the ban"
    looked = _at(stack, doubtful, "found") - _at(stack, waiting, "claimed")
    assert looked < timedelta(seconds=0.5), "the doubt waited for new orders"
    for name in (doubtful, waiting):
        assert stack.posts(name) == 1
        stack.check(name)


def _at(stack: Stack, name: str, event: str) -> datetime:
    lines = stack.intent(name)["transitions"]
    return datetime.fromisoformat(next(line["at"] for line in lines if line["event"] == event))


@pytest.mark.parametrize("offset_ms", [1500, -1500, 30_000], ids=["ahead", "behind", "far ahead"])
def test_c6_an_order_is_placed_though_the_venues_clock_steps(
    stacks: Stacks, offset_ms: int
) -> None:
    stack = stacks["clock"]
    stack.venue.clock(offset_ms)
    name = stack.submit(SYMBOLS[0], valid_for_s=60)
    intent = stack.wait(name, "FILLED")
    assert "rejected" not in stack.events(name)
    assert intent["attempt"] <= 3
    stack.check(name)
    lost = stack.submit(SYMBOLS[1], valid_for_s=60)
    stack.wait(lost, "FILLED")
    stack.check(lost)


def test_a13_a_strategy_that_repeats_itself_while_all_answers_are_lost_has_one_order(
    stacks: Stacks,
) -> None:
    stack = stacks["flood"]
    stack.venue.faults(
        faults.silent_answer(symbol=wire(SYMBOLS[0]), times=None),
        *[
            faults.fault(path, action={"drop_before": True}, symbol=wire(SYMBOLS[0]), for_s=8)
            for path in ("query", "open_orders", "all_orders", "trades")
        ],
    )
    decision = stack.decision(SYMBOLS[0])
    names = set()
    for _ in range(8):
        answer = stack.call("POST", "intents", decision)
        assert answer.status == 201, answer
        names.add(answer.body["client_order_id"])
        time.sleep(1)
    (name,) = names
    stack.wait(name, "FILLED")
    assert (stack.posts(name), len(stack.orders(name))) == (1, 1)
    stack.check(name)


# ---- the database. In each an order waits while it is away, and its lane would like to send it.


@pytest.fixture
def alone() -> Iterator[Stack]:
    """A desk on the embedded database, for tests that hurt it."""
    with brisk(SYMBOLS[:4]) as stack:
        yield stack


@contextmanager
def waiting(stack: Stack) -> Iterator[str]:
    """An order that no lane has seen yet: they stand still until the block ends."""
    while True:
        with frozen(*stack.desk.lane_pids()):
            if not in_a_transaction(stack):  # else nobody could submit
                yield stack.submit(SYMBOLS[2], valid_for_s=600)
                return
        time.sleep(0.05)


def in_a_transaction(stack: Stack) -> bool:
    """Whether a writer holds the embedded database's queue."""
    queue = stack.desk.data / "db.sqlite3.lock"
    if not queue.exists():
        return False
    with queue.open() as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def nothing_is_sent(stack: Stack, waits: str, open_order: str) -> None:
    """While lanes run, an order waits and another fills at the venue."""
    before = len(stack.venue.ledger()["requests"])
    stack.venue.fill(wire(SYMBOLS[0]), client_order_id=open_order)
    time.sleep(AWAY_S)
    assert len(stack.venue.ledger()["requests"]) == before
    assert stack.posts(waits) == 0


def goes_on(stack: Stack, *names: str) -> None:
    """What was under way comes to its end, and something new does too."""
    after = ""

    def admitted() -> str:
        nonlocal after
        answer = stack.call("POST", "intents", stack.decision(SYMBOLS[1]))
        after = answer.body["client_order_id"] if answer.status == 201 else ""
        return after

    stack.desk.wait(admitted, "the desk takes orders again", 40)
    for name in (*names, after):
        stack.wait(name, within_s=60)
        stack.check(name)
    assert unrecorded(stack) == []


def unrecorded(stack: Stack) -> list[str]:
    """Requests at the venue without a claim in the journal."""
    sent = [row["client_order_id"] for row in stack.venue.ledger()["requests"]]
    attempts = dict(stack.desk.sql("SELECT client_order_id, attempt FROM orders_intent"))
    return [name for name in sent if sent.count(name) > attempts.get(name, 0)]


def test_f7_nothing_is_sent_unjournaled_while_the_embedded_database_is_locked(
    alone: Stack,
) -> None:
    name = alone.resting(SYMBOLS[0])
    with closing(sqlite3.connect(alone.desk.data / "db.sqlite3", timeout=20)) as locking:
        with waiting(alone) as waits:
            locking.execute("BEGIN IMMEDIATE")
        nothing_is_sent(alone, waits, name)
        locking.execute("ROLLBACK")
    goes_on(alone, name, waits)


def test_f7_nothing_is_sent_unjournaled_while_the_disk_is_full(alone: Stack) -> None:
    """No process of the desk can make a file longer, as on a full disk."""
    name = alone.resting(SYMBOLS[0])
    with waiting(alone) as waits:
        limit_files(alone, full=True)
    refused = alone.call("POST", "intents", alone.decision(SYMBOLS[1]))
    assert refused.status >= 500, refused
    nothing_is_sent(alone, waits, name)
    limit_files(alone, full=False)
    goes_on(alone, name, waits)


def limit_files(stack: Stack, *, full: bool) -> None:
    for pid in stack.desk.processes():
        _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (0 if full else hard, hard))


def test_f7_nothing_is_sent_unjournaled_while_postgresql_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(postgres.URL_VARIABLE, raising=False)  # a server of its own
    with (
        postgres.server() as server,
        postgres.database(server) as url,
        brisk(SYMBOLS[:4], database_url=url) as stack,
    ):
        name = stack.resting(SYMBOLS[0])
        with ExitStack() as away:
            with waiting(stack) as waits:
                away.enter_context(frozen(*postgres.pids(server)))
            nothing_is_sent(stack, waits, name)
        goes_on(stack, name, waits)
