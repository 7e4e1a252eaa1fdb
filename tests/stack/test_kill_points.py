"""F1, F5: a lane is killed, or put to sleep, at every point between two of its journal writes."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from orders.lane.points import AFTER_SEND, BEFORE_SEND, POINTS, VARIABLE
from tests.stack.conftest import SYMBOLS, Stack, brisk, database_of, wire
from tests.support import simulator as faults
from tests.support.desk import alive

DUPLICATE = '{"code":-2010,"msg":"Duplicate order sent."}'
AGE = "Timestamp for this request is outside of the recvWindow."


@dataclass
class Armed:
    """A desk whose lanes die or sleep at a point of the test's choice, once."""

    stack: Stack
    folder: Path

    def arm(self, point: str, sent: str = "KILL") -> None:
        hidden = self.folder / f".{point}"
        hidden.write_text(sent)
        hidden.rename(self.folder / point)

    def fired(self, point: str) -> bool:
        return not (self.folder / point).exists()


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def armed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Armed]:
    folder = tmp_path_factory.mktemp("points")
    with ExitStack() as stack:
        url = stack.enter_context(database_of(request))
        desk = brisk(SYMBOLS, database_url=url, environment={VARIABLE: str(folder)})
        yield Armed(stack.enter_context(desk), folder)


_symbols = iter(SYMBOLS * 4)


@pytest.fixture
def symbol(armed: Armed) -> Iterator[str]:
    yield next(_symbols)
    armed.stack.venue.clear_faults()


def plain(stack: Stack, symbol: str) -> dict[str, Any]:
    return {}


def lost(stack: Stack, symbol: str) -> dict[str, Any]:
    stack.venue.faults(faults.lost_answer(symbol=wire(symbol)))
    return {}


def never_there(stack: Stack, symbol: str) -> dict[str, Any]:
    stack.venue.faults(faults.dropped_before(symbol=wire(symbol)))
    return {}


def too_old(stack: Stack, symbol: str) -> dict[str, Any]:
    stack.venue.faults(faults.refused(-1021, AGE, symbol=wire(symbol)))
    return {}


def refused(stack: Stack, symbol: str) -> dict[str, Any]:
    return {"quantity": "1000000"}


def resting(stack: Stack, symbol: str) -> dict[str, Any]:
    return {"type": "limit", "price": "90"}


def duplicate(stack: Stack, symbol: str) -> dict[str, Any]:
    name = wire(symbol)
    stack.venue.faults(
        faults.answered(status=400, body=DUPLICATE, execute=True, symbol=name, ordinal=1)
    )
    return {}


def blind(stack: Stack, symbol: str) -> dict[str, Any]:
    """The answer is lost, and the first look-up fails."""
    name = wire(symbol)
    stack.venue.faults(
        faults.lost_answer(symbol=name),
        faults.answered(path="query", status=500, body="{}", symbol=name, times=1),
    )
    return {}


def late(stack: Stack, symbol: str) -> dict[str, Any]:
    """The answer comes after the lane that asked is gone."""
    stack.venue.faults(faults.late(after_ms=300, symbol=wire(symbol)))
    return {}


def forgotten(stack: Stack, symbol: str) -> dict[str, Any]:
    """A resting order that no look-up shows for a while."""
    stack.venue.faults(
        faults.hidden("query", "open_orders", "all_orders", for_s=6, symbol=wire(symbol))
    )
    return {"type": "limit", "price": "90"}


Scene = Callable[[Stack, str], dict[str, Any]]
# Where each point lies. One that is added to the lane and not here fails below.
SCENES: dict[str, Scene] = {
    "claimed": plain,
    BEFORE_SEND: plain,
    AFTER_SEND: plain,
    "accepted": plain,
    "fill": plain,
    "filled": plain,
    "rejected": refused,
    "not_placed": too_old,
    "no_answer": lost,
    "duplicate": duplicate,
    "reconcile_started": lost,
    "found": lost,
    "looked": never_there,
    "absent": never_there,
    "inconclusive": blind,
    "working": resting,
    "cancel_sent": resting,
    "canceled": resting,
    "lost_sight": forgotten,
    "owner_lost": late,
    "evidence": late,
    "contradicted": resting,
}
# Reached by more than the story of one order; each has a test of its own below.
SINGLE = {"owner_lost", "evidence", "contradicted"}


def test_every_point_of_the_lane_has_a_scene() -> None:
    assert set(SCENES) == set(POINTS)


def ended(stack: Stack, name: str) -> None:
    """To the end, cancelling what rests, and nothing placed twice or lost."""
    if stack.intent(name)["type"] == "limit":
        stack.wait(name, "LIVE", "ACKED", "CANCELED", within_s=40)
        stack.call("POST", f"intents/{name}/cancel")
    stack.wait(name, within_s=40)
    stack.check(name)


@pytest.mark.parametrize("point", sorted(set(SCENES) - SINGLE))
def test_a_lane_killed_at_any_point_leaves_one_order_in_its_right_state(
    armed: Armed, symbol: str, point: str
) -> None:
    stack = armed.stack
    changes = SCENES[point](stack, symbol)
    armed.arm(point)
    name = stack.submit(symbol, valid_for_s=600, **changes)
    if point in ("cancel_sent", "canceled"):
        stack.wait(name, "LIVE")
        stack.call("POST", f"intents/{name}/cancel")
    stack.desk.wait(lambda: armed.fired(point), f"the lane is killed at {point}", 30)
    ended(stack, name)


def test_a_lane_killed_after_it_declared_an_owner_lost(armed: Armed, symbol: str) -> None:
    stack = armed.stack
    stack.venue.faults(faults.silent_answer(symbol=wire(symbol)))
    armed.arm("owner_lost")
    name = stack.submit(symbol, valid_for_s=600)
    stack.desk.wait(lambda: stack.orders(name), "the order is at the venue", 20)
    stack.desk.kill_worker()
    stack.desk.wait(lambda: armed.fired("owner_lost"), "the next lane is killed too", 30)
    ended(stack, name)
    assert stack.posts(name) == 1


def test_a_lane_killed_while_it_keeps_evidence_of_an_answer_that_came_late(
    armed: Armed, symbol: str
) -> None:
    """The sleeper's answer belongs to an epoch that is over: evidence, and no change of state."""
    stack = armed.stack
    stack.venue.faults(faults.silent_answer(symbol=wire(symbol)))
    armed.arm(AFTER_SEND, "STOP")
    name = stack.submit(symbol, valid_for_s=600)
    sleeper = asleep(armed, AFTER_SEND)
    stack.wait(name, "FILLED", within_s=30)
    before = stack.intent(name)["state"]
    os.kill(sleeper, signal.SIGCONT)
    stack.desk.wait(lambda: "evidence" in stack.events(name), "the late answer is kept", 20)
    assert stack.intent(name)["state"] == before
    assert stack.posts(name) == 1
    stack.check(name)


def asleep(armed: Armed, point: str) -> int:
    """Wait until a lane sleeps at the point; its process ID."""

    def stopped() -> int:
        for pid in armed.stack.desk.processes():
            if alive(pid) and _state(pid) == "T":
                return pid
        return 0

    armed.stack.desk.wait(lambda: armed.fired(point), f"a lane reaches {point}", 20)
    return int(armed.stack.desk.wait(stopped, f"a lane sleeps at {point}", 10))


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def test_f5_a_sender_that_slept_past_its_lease_places_nothing(armed: Armed, symbol: str) -> None:
    stack = armed.stack
    armed.arm(BEFORE_SEND, "STOP")
    name = stack.submit(symbol, valid_for_s=600)
    sleeper = asleep(armed, BEFORE_SEND)
    stack.wait(name, "FILLED", within_s=40)
    assert stack.posts(name) == 1
    os.kill(sleeper, signal.SIGCONT)
    after = stack.submit(symbol)
    stack.wait(after, "FILLED", within_s=30)
    assert (stack.posts(name), len(stack.orders(name))) == (1, 1)
    stack.check(name)
    stack.check(after)
