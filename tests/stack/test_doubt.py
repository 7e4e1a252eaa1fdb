"""B to E: "not found" is not "not there", pushes repeat, and doubt that lasts halts one market."""

from __future__ import annotations

from typing import Any

import pytest

from tests.stack.conftest import DOUBT_S, EXPIRY_MS, Stack, wire
from tests.support import simulator as faults

DUPLICATE = '{"code":-2010,"msg":"Duplicate order sent."}'


def test_b1_an_order_that_stays_hidden_for_three_seconds_is_found(
    polled: Stack, symbol: str
) -> None:
    polled.venue.faults(
        faults.lost_answer(symbol=wire(symbol)),
        faults.hidden("query", "open_orders", "all_orders", "trades", for_s=3, symbol=wire(symbol)),
    )
    name = polled.submit(symbol)
    polled.wait(name, "FILLED")
    assert polled.states(name)[-4:] == ["UNKNOWN", "RECONCILING", "ACKED", "FILLED"]
    assert "absent" not in polled.events(name)
    assert polled.posts(name) == 1
    polled.check(name)


@pytest.mark.parametrize("hidden", [("query",), ("query", "open_orders"), ("open_orders",)])
def test_b2_a_filled_order_that_the_id_look_up_hides_is_found_further_up(
    polled: Stack, symbol: str, hidden: tuple[str, ...]
) -> None:
    polled.venue.faults(
        faults.lost_answer(symbol=wire(symbol)),
        faults.hidden(*hidden, for_s=5, symbol=wire(symbol)),
    )
    name = polled.submit(symbol)
    polled.wait(name, "FILLED")
    assert polled.posts(name) == 1
    polled.check(name)


def test_b4_a_request_executed_late_is_met_by_the_second_look(polled: Stack, symbol: str) -> None:
    """The venue accepts it just before it expires, after the first looks found nothing."""
    polled.venue.faults(faults.late(before_ms=EXPIRY_MS - 600, symbol=wire(symbol)))
    polled.venue.faults(faults.fault("create", action={"drop_after": {}}, symbol=wire(symbol)))
    name = polled.submit(symbol)
    polled.wait(name, "FILLED")
    assert polled.posts(name) == 1
    polled.check(name)


def test_b7_another_order_in_the_answer_to_a_look_up_is_not_adopted(
    polled: Stack, symbol: str
) -> None:
    other = polled.submit(symbol)
    polled.wait(other, "FILLED")
    ignore: dict[str, Any] = {"ignore_id": True}
    polled.venue.faults(
        faults.dropped_before(symbol=wire(symbol)),
        faults.fault("query", action=ignore, symbol=wire(symbol), times=None),
    )
    name = polled.submit(symbol)
    intent = polled.wait(name, "FILLED", within_s=30)
    assert intent["venue_order_id"] != polled.intent(other)["venue_order_id"]
    assert len(polled.orders(name)) == 1
    polled.check(name)
    polled.check(other)


def test_b8_failed_look_ups_never_count_as_not_found(polled: Stack, symbol: str) -> None:
    """Longer than the cap: the market halts and pages once; later it resolves by itself."""
    long_s = DOUBT_S + 15
    polled.venue.faults(
        faults.lost_answer(symbol=wire(symbol)),
        *[
            faults.answered(path=path, status=500, body="{}", symbol=wire(symbol), for_s=long_s)
            for path in ("query", "open_orders", "all_orders", "trades")
        ],
    )
    name = polled.submit(symbol)

    polled.desk.wait(lambda: polled.halted(symbol), f"{symbol} is halted", DOUBT_S + 10)
    assert polled.intent(name)["state"] in ("UNKNOWN", "RECONCILING")
    (alert,) = polled.alerts(symbol)
    assert (alert["kind"], alert["severity"]) == ("market_halted", "critical")
    refused = polled.act(symbol, "resume")
    assert (refused.status, refused.body["code"]) == (409, "refused")
    denied = polled.call("POST", "intents", polled.decision(symbol))
    assert denied.status == 409
    assert denied.body["state"] == "DENIED"
    polled.wait(name, "FILLED", within_s=60)
    assert polled.market(symbol)["state"] == "HALTED"
    assert polled.act(symbol, "resume").status == 200
    assert [row["state"] for row in polled.alerts(symbol)] in ([], ["RESOLVED"])
    assert polled.posts(name) == 1
    polled.check(name)
    after = polled.submit(symbol)
    polled.wait(after, "FILLED")


def test_doubt_in_one_market_leaves_the_others_alone(
    polled: Stack, symbol: str, other: str
) -> None:
    polled.venue.faults(faults.dropped_before(symbol=wire(symbol)))
    doubtful = polled.submit(symbol)
    polled.wait(doubtful, "UNKNOWN", "RECONCILING")
    waiting = polled.submit(symbol)
    free = polled.submit(other)
    polled.wait(free, "FILLED", within_s=3)
    assert polled.intent(waiting)["state"] == "INTENT"
    polled.wait(doubtful, "FILLED")
    polled.wait(waiting, "FILLED")
    for name in (doubtful, waiting, free):
        polled.check(name)


def test_a_reconcile_by_hand_looks_at_once(polled: Stack, symbol: str) -> None:
    polled.venue.faults(faults.dropped_before(symbol=wire(symbol)))
    name = polled.submit(symbol)
    polled.wait(name, "UNKNOWN", "RECONCILING")
    assert polled.act(symbol, "reconcile").status in (200, 202)
    polled.wait(name, "FILLED")
    polled.check(name)


def test_e3_a_duplicate_answer_proves_that_the_order_exists(polled: Stack, symbol: str) -> None:
    polled.venue.faults(
        faults.dropped_before(symbol=wire(symbol), ordinal=1),
        faults.answered(status=400, body=DUPLICATE, execute=True, symbol=wire(symbol), ordinal=2),
    )
    name = polled.submit(symbol)
    polled.wait(name, "FILLED", within_s=30)
    events = polled.events(name)
    assert "duplicate" in events
    assert "rejected" not in events
    assert (polled.posts(name), len(polled.orders(name))) == (2, 1)
    polled.check(name)


def test_b11_a_request_refused_for_its_age_is_sent_afresh(polled: Stack, symbol: str) -> None:
    polled.venue.faults(
        faults.refused(-1021, "Timestamp for this request is outside of the recvWindow.",
                       symbol=wire(symbol))
    )  # fmt: skip
    name = polled.submit(symbol)
    polled.wait(name, "FILLED")
    assert "not_placed" in polled.events(name)
    assert "UNKNOWN" not in polled.states(name)
    assert polled.posts(name) == 2
    polled.check(name)
