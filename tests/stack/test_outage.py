"""A venue that cannot be reached for a minute, with the desk's own defaults."""

from __future__ import annotations

from tests.stack.conftest import SYMBOLS, Stack, wire
from tests.support import simulator as faults
from tests.support.desk import Desk
from tests.support.simulator import Simulator

OUTAGE_S = 60.0
SYMBOL, OTHER = SYMBOLS[:2]


def test_a_minute_without_the_venue_halts_one_market_until_a_person_resumes_it() -> None:
    with Simulator() as venue, Desk(venue.url, accounts={"main": [SYMBOL, OTHER]}) as desk:
        stack = Stack(desk, venue)
        warm = stack.submit(SYMBOL)
        stack.wait(warm, "FILLED")
        venue.faults(faults.unreachable(OUTAGE_S, symbol=wire(SYMBOL)))
        name = stack.submit(SYMBOL)
        desk.wait(lambda: stack.market(SYMBOL)["state"] == "HALTED", "the market halts", 50)
        assert stack.intent(name)["state"] in ("UNKNOWN", "RECONCILING")
        (alert,) = stack.alerts(SYMBOL)
        assert (alert["kind"], alert["state"]) == ("market_halted", "OPEN")
        assert stack.act(SYMBOL, "resume").status == 409
        other = stack.submit(OTHER)
        stack.wait(other, "FILLED")

        # The venue is back: proven absent, and not sent, since the market is halted.
        stack.wait(name, "DENIED", within_s=90)
        assert stack.orders(name) == []
        assert stack.market(SYMBOL)["state"] == "HALTED"
        assert stack.act(SYMBOL, "resume", "the venue is back").status == 200
        again = stack.submit(SYMBOL)
        stack.wait(again, "FILLED")
        for each in (warm, name, other, again):
            stack.check(each)
