"""How long a new lane needs until it has seen everything that was open."""

from __future__ import annotations

import os
import signal
from datetime import UTC, datetime
from itertools import cycle, islice

from tests.bench import Row
from tests.stack.conftest import SYMBOLS, Stack
from tests.support.desk import Desk
from tests.support.simulator import Simulator

OPEN, MARKETS = 1000, 20
LIST = 500
# The venue takes 100 orders in 10 seconds, and the lane keeps to that.
PLACED_WITHIN_S = 240.0
WANTED_S = 5.0
TIMES = (
    "SELECT taken_at, recovered_at FROM orders_lease WHERE owner <> '' AND recovered_at IS NOT NULL"
)


def rows() -> list[Row]:
    with (
        Simulator() as venue,
        Desk(venue.url, accounts={"main": SYMBOLS[:MARKETS]}, stream=False) as desk,
    ):
        stack = Stack(desk, venue)
        _place(stack)
        before = desk.sql(TIMES)
        for pid in desk.lane_pids():
            os.kill(pid, signal.SIGKILL)
        ((taken, recovered),) = desk.wait(
            lambda: [row for row in desk.sql(TIMES) if row != before[0]], "recovered", 60
        )
        return [
            Row(
                f"recovery of {OPEN} open orders on {MARKETS} symbols",
                (_instant(recovered) - _instant(taken)).total_seconds(),
                "s",
                WANTED_S,
                "wanted",
            )
        ]


def _place(stack: Stack) -> None:
    """Resting orders, far below the price."""
    symbols = islice(cycle(SYMBOLS[:MARKETS]), OPEN)
    wanted = [
        stack.decision(symbol, type="limit", price="50", quantity="0.2", valid_for_s=600)
        for symbol in symbols
    ]
    for start in range(0, OPEN, LIST):
        answer = stack.call("POST", "intents", wanted[start : start + LIST])
        assert answer.status in (200, 201, 207), answer
    open_now = "SELECT count(*) FROM orders_intent WHERE state = 'LIVE'"
    stack.desk.wait(
        lambda: stack.desk.sql(open_now)[0][0] == OPEN, "all orders are open", PLACED_WITHIN_S
    )


def _instant(value: datetime | str) -> datetime:
    return datetime.fromisoformat(value).replace(tzinfo=UTC) if isinstance(value, str) else value
