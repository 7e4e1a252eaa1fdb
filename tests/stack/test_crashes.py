"""F: processes die at any moment. One order, the right state, and another lane within seconds."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.stack.conftest import EXPIRY_MS, TIMEOUT_MS, Stack, wire
from tests.support import simulator as faults
from tests.support.desk import Desk, processes_with
from tests.support.simulator import Simulator

SYMBOL = "T01/USDT"
TAKEOVER_S = 5.0
PAST_TIME_OUT_S = 12.0  # the task's own is 6 s
# In one process: the supervisor replaces a dead lane within a quarter of a second.
KILL_AND_ENQUEUE = (
    "import os, signal\n"
    "from django_q.tasks import async_task\n"
    "os.kill({pid}, signal.SIGKILL)\n"
    "result = async_task('orders.tasks.lane', cluster='lanes', timeout=6)"
)
ENQUEUE = (
    "from django_q.tasks import async_task\n"
    "result = async_task('orders.tasks.lane', cluster='lanes', timeout=-1)"
)

Start = Callable[..., Stack]


@pytest.fixture
def start(database: str | None) -> Iterator[Start]:
    """Starts a desk of this test's own, with a fresh venue."""
    with contextlib.ExitStack() as stack:

        def run(**options: Any) -> Stack:
            venue = stack.enter_context(Simulator())
            values = {
                "timeout_ms": TIMEOUT_MS,
                "request_expiry_ms": EXPIRY_MS,
                "stream": False,
                "accounts": {"main": [SYMBOL, "T02/USDT"]},
                **options,
            }
            desk = stack.enter_context(Desk(venue.url, database_url=database, **values))
            return Stack(desk, venue)

        yield run


def leases(stack: Stack) -> list[dict[str, Any]]:
    """When a lane took the account, oldest first."""
    body = stack.call("GET", "transitions?after=0&limit=500", role="viewer").body
    rows = body["items"] if isinstance(body, dict) else body
    return [row for row in rows if row["event"] == "lease_taken"]


def out(stack: Stack, name: str) -> None:
    """Wait until the venue has executed the order."""
    stack.desk.wait(lambda: stack.orders(name), f"{name} is at the venue", 10)


def test_f1_a_lane_killed_in_the_middle_of_a_send_loses_nothing(start: Start) -> None:
    stack = start()
    stack.venue.faults(faults.late(after_ms=900, symbol=wire(SYMBOL)))
    name = stack.submit(SYMBOL)
    out(stack, name)
    stack.desk.kill_worker()
    killed_at = datetime.now(UTC)
    stack.wait(name, "FILLED")
    assert "owner_lost" in stack.events(name)
    assert stack.posts(name) == 1
    stack.check(name)
    taken = datetime.fromisoformat(leases(stack)[-1]["at"])
    assert (taken - killed_at).total_seconds() < TAKEOVER_S


def test_f1_a_lane_killed_before_the_request_arrives_sends_it_again_once(start: Start) -> None:
    stack = start()
    stack.venue.faults(faults.dropped_before(symbol=wire(SYMBOL), times=1))
    name = stack.submit(SYMBOL)
    stack.desk.wait(lambda: stack.posts(name), "the request was dropped", 10)
    stack.desk.kill_worker()
    stack.wait(name, "FILLED", within_s=30)
    assert (stack.posts(name), len(stack.orders(name))) == (2, 1)
    stack.check(name)


def test_after_a_kill_the_missing_lane_is_back(start: Start) -> None:
    stack = start()
    stack.desk.wait(lambda: len(stack.desk.lane_pids()) == 2, "two lanes run", 20)
    killed = stack.desk.kill_worker()

    def replaced() -> bool:
        lanes = stack.desk.lane_pids()
        return len(lanes) == 2 and killed not in lanes

    stack.desk.wait(replaced, "two lanes run again", TAKEOVER_S + 5)
    name = stack.submit(SYMBOL)
    stack.wait(name, "FILLED")
    stack.check(name)


def test_f1_everything_killed_at_once_comes_back_with_one_order(start: Start) -> None:
    stack = start()
    stack.venue.faults(faults.late(after_ms=900, symbol=wire(SYMBOL)))
    name = stack.submit(SYMBOL)
    out(stack, name)
    stack.desk.kill_everything()
    stack.desk.start()
    stack.wait(name, "FILLED")
    assert stack.posts(name) == 1
    stack.check(name)


def test_a_stop_in_the_middle_of_a_send_leaves_no_send_without_its_record(start: Start) -> None:
    stack = start()
    stack.venue.faults(faults.late(after_ms=800, symbol=wire(SYMBOL)))
    name = stack.submit(SYMBOL)
    out(stack, name)
    assert stack.desk.stop() < 10
    assert not processes_with(f"ORDERDESK_DATA={stack.desk.data}")
    stack.desk.start()
    assert "owner_lost" not in stack.events(name)
    stack.wait(name, "FILLED")
    assert stack.posts(name) == 1
    stack.check(name)


def test_f3_a_lane_killed_by_the_queues_own_time_out_in_a_send_loses_nothing(start: Start) -> None:
    """The only lane comes from a task with a time-out, and orders are always on their way."""
    stack = start(environment={"ORDERDESK_LANES": "1"})
    stack.desk.python(KILL_AND_ENQUEUE.format(pid=stack.desk.lane_pids()[0]))
    stack.desk.wait(lambda: len(leases(stack)) > 1, "the queued lane owns the account", 15)
    owned, until = len(leases(stack)), time.monotonic() + PAST_TIME_OUT_S
    stack.venue.faults(faults.late(after_ms=900, symbol=wire(SYMBOL), times=None))
    names: list[str] = []

    def over() -> bool:
        """The time-out ended the lane, or was raised inside it and it went on."""
        names.append(stack.submit(SYMBOL))
        return len(leases(stack)) > owned or time.monotonic() > until

    stack.desk.wait(over, "the time-out is past", 2 * PAST_TIME_OUT_S)
    for name in names:
        stack.wait(name, "FILLED", within_s=40)
        assert stack.posts(name) == 1
        stack.check(name)


def test_f4_lane_tasks_delivered_many_times_do_nothing_twice(start: Start) -> None:
    stack = start()
    for _ in range(3):
        stack.desk.python(ENQUEUE)
    names = [stack.submit(SYMBOL) for _ in range(3)]
    stack.desk.kill_worker()  # so that the copies run, at once and later
    names += [stack.submit(symbol) for symbol in (SYMBOL, "T02/USDT", SYMBOL)]
    for name in names:
        stack.wait(name, "FILLED", within_s=30)
        assert stack.posts(name) == 1
        stack.check(name)


def test_slices_hand_the_account_over_cleanly_while_orders_go_on(start: Start) -> None:
    stack = start(environment={"ORDERDESK_SLICE_S": "4"})
    began = len(leases(stack))
    names: list[str] = []

    def handed_over() -> bool:
        names.append(stack.submit(SYMBOL))
        stack.wait(names[-1], "FILLED", within_s=15)
        return len(leases(stack)) >= began + 2

    stack.desk.wait(handed_over, "two hand-overs", 60)
    assert {row["reason"] for row in leases(stack)[began:]} == {"clean hand-over"}
    for name in names:
        assert stack.posts(name) == 1
        assert stack.states(name) == ["INTENT", "IN_FLIGHT", "ACKED", "FILLED"]
        stack.check(name)
