"""F5: what each fence is for. A sender sleeps past its lease; its successor proves the order absent
and sends it again; then the sleeper wakes."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from orders.lane.points import BEFORE_SEND, VARIABLE
from tests.stack.conftest import SYMBOLS, brisk
from tests.stack.test_kill_points import Armed, asleep

UNFENCED = Path(__file__).resolve().parents[1] / "support" / "unfenced"


@pytest.fixture
def unfenced(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Armed]:
    environment = {
        VARIABLE: str(tmp_path),
        "PYTHONPATH": str(UNFENCED),
        "ORDERDESK_TEST_WITHOUT": request.param,
    }
    with brisk(SYMBOLS[:1], environment=environment) as stack:
        yield Armed(stack, tmp_path)


def sleep_and_wake(armed: Armed) -> str:
    """Returns the client order ID, once the sleeper's request was answered too."""
    stack = armed.stack
    armed.arm(BEFORE_SEND, "STOP")
    name = stack.submit(SYMBOLS[0], valid_for_s=600)
    sleeper = asleep(armed, BEFORE_SEND)
    stack.wait(name, "FILLED", within_s=40)
    assert stack.posts(name) == 1
    os.kill(sleeper, signal.SIGCONT)
    stack.desk.wait(lambda: stack.posts(name) == 2, "the sleeper sends", 20)
    return name


@pytest.mark.parametrize("unfenced", ["deadline"], indirect=True)
def test_f5_a_sleeper_that_forgets_its_lease_is_refused_by_the_venue(unfenced: Armed) -> None:
    stack = unfenced.stack
    name = sleep_and_wake(unfenced)
    outcomes = [row["outcome"] for row in stack.venue.ledger(client_order_id=name)["requests"]]
    assert sorted(outcomes) == ["executed", "refused"]
    stack.check(name)


@pytest.mark.parametrize("unfenced", ["deadline,expiry"], indirect=True)
def test_f5_without_both_fences_there_is_a_second_order(unfenced: Armed) -> None:
    name = sleep_and_wake(unfenced)
    assert len(unfenced.stack.orders(name)) == 2
