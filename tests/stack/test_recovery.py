"""F2, F8, F9: coming back to much that is over, to something broken, and to old schedules."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from urllib.parse import urlencode

import pytest

from tests.stack.conftest import DOUBT_S, SYMBOLS, Stack, brisk, wire
from tests.support import simulator as faults
from tests.support.simulator import API_KEY, SECRET, Simulator

OPEN, FINISHED = 14, 3000
MARKETS = SYMBOLS[:7]
pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def stack() -> Iterator[Stack]:
    with brisk(MARKETS, environment={"ORDERDESK_DOUBT_S": str(DOUBT_S)}) as stack:
        yield stack


def finish(venue: Simulator, symbol: str, count: int) -> None:
    """Somebody's market orders, placed beside the desk and filled at once."""
    connection = HTTPConnection("127.0.0.1", venue.port)
    for _ in range(count):
        order = {
            "symbol": symbol,
            "side": "BUY",
            "type": "MARKET",
            "quantity": "0.1",
            "timestamp": int(time.time() * 1000),
        }
        text = urlencode(order)
        signature = hmac.new(SECRET.encode(), text.encode(), hashlib.sha256).hexdigest()
        path = f"/api/v3/order?{text}&signature={signature}"
        connection.request("POST", path, headers={"X-MBX-APIKEY": API_KEY})
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        answer.read()
    connection.close()


def test_f2_fourteen_open_orders_among_three_thousand_finished_ones_are_all_seen(
    stack: Stack,
) -> None:
    names = [
        stack.submit(symbol, type="limit", price=price)
        for symbol in MARKETS
        for price in ("80", "90")
    ]
    for name in names:
        stack.wait(name, "LIVE")
    stack.desk.kill_everything()
    finish(stack.venue, wire(MARKETS[0]), FINISHED)
    filled, canceled = names[0], names[1]
    stack.venue.fill(wire(MARKETS[0]), client_order_id=filled)
    before = stack.venue.calls()
    stack.desk.start()
    recovery = stack.venue.calls() - before
    assert recovery < 10 * len(MARKETS), f"a storm: {recovery} requests"
    stack.wait(filled, "FILLED")
    assert {stack.intent(name)["state"] for name in names[1:]} == {"LIVE"}
    assert len(names) == OPEN
    stack.call("POST", f"intents/{canceled}/cancel")
    stack.wait(canceled, "CANCELED")
    for name in (filled, canceled):
        stack.check(name)
    assert stack.market(MARKETS[0])["state"] == "OPEN"


def test_f8_a_market_whose_orders_cannot_be_read_stays_closed_and_the_others_open(
    stack: Stack,
) -> None:
    broken, sound = MARKETS[0], MARKETS[1]
    name = stack.resting(broken)
    stack.desk.kill_everything()
    rubbish = [{"symbol": wire(broken), "orderId": {"of": "nobody"}, "executedQty": "many"}]
    stack.venue.faults(
        faults.answered(200, rubbish, path="open_orders", symbol=wire(broken), times=None)
    )
    stack.desk.start()
    stack.wait(stack.submit(sound), "FILLED")
    waiting = stack.submit(broken, valid_for_s=600)
    stack.desk.wait(
        lambda: [row for row in stack.alerts(broken) if row["kind"] == "market_unseen"],
        "people are told",
        DOUBT_S + 20,
    )
    assert len(stack.alerts(broken)) == 1
    assert (stack.intent(waiting)["state"], stack.posts(waiting)) == ("INTENT", 0)
    stack.venue.clear_faults()
    stack.wait(waiting, "FILLED", within_s=60)
    assert stack.intent(name)["state"] == "LIVE"
    stack.desk.wait(
        lambda: all(row["state"] == "RESOLVED" for row in stack.alerts(broken)), "it is over", 10
    )


def test_f9_a_scheduler_that_was_down_for_hours_does_not_catch_up_in_a_flood(
    stack: Stack,
) -> None:
    stack.desk.stop()
    stack.desk.python(
        "from datetime import timedelta\n"
        "from django.utils import timezone\n"
        "from django_q.models import Schedule, Success\n"
        "Schedule.objects.create(func='orders.tasks.beat', schedule_type='I', minutes=1,"
        " cluster='work', next_run=timezone.now() - timedelta(hours=4), name='old')\n"
        "result = Success.objects.filter(group='old').delete() and 0"
    )
    stack.desk.start()
    ran = "SELECT count(*) FROM django_q_task WHERE \"group\" = 'old'"
    stack.desk.wait(lambda: stack.desk.sql(ran)[0][0] >= 1, "the schedule runs once", 60)
    time.sleep(3)
    assert stack.desk.sql(ran)[0][0] == 1
    assert stack.desk.sql("SELECT count(*) FROM orders_alert") == [(0,)]
    stack.wait(stack.submit(MARKETS[0]), "FILLED")
