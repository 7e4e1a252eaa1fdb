"""D: cancels. The final state follows the evidence; a cancel never places anything."""

from __future__ import annotations

from typing import Any

from tests.stack.conftest import Stack, wire
from tests.support import simulator as faults


def ask(stack: Stack, name: str) -> None:
    assert stack.call("POST", f"intents/{name}/cancel").status == 202


def test_d1_a_fill_on_the_way_of_a_cancel_is_filled(main: Stack, symbol: str) -> None:
    name = main.resting(symbol)
    late: dict[str, Any] = {"delay_before_ms": 700}
    main.venue.faults(faults.fault("cancel", action=late, symbol=wire(symbol)))
    assert main.call("POST", f"intents/{name}/cancel").status == 202
    main.venue.fill(wire(symbol), client_order_id=name)
    main.wait(name, "FILLED")
    assert main.posts(name) == 1
    main.check(name)


def test_d2_a_fill_pushed_after_a_cancel_is_booked_and_halts(main: Stack, symbol: str) -> None:
    name = main.resting(symbol)
    ask(main, name)
    main.wait(name, "CANCELED")
    main.venue.fill(wire(symbol), client_order_id=name, quantity="0.4", late=True)
    main.desk.wait(lambda: main.intent(name)["filled"] == "0.4", "the fill is booked", 20)
    main.wait(name, "CANCELED")
    assert "contradicted" in main.events(name)
    assert main.halted(symbol)
    main.check(name)


def test_d2_without_a_stream_the_watch_finds_the_late_fill(polled: Stack, symbol: str) -> None:
    name = polled.resting(symbol)
    ask(polled, name)
    polled.wait(name, "CANCELED")
    polled.venue.fill(wire(symbol), client_order_id=name, late=True)
    polled.wait(name, "FILLED")
    assert "contradicted" in polled.events(name)
    assert polled.halted(symbol)
    polled.check(name)


def test_d3_a_cancel_that_is_never_answered_is_sent_until_the_end_is_known(
    polled: Stack, symbol: str
) -> None:
    name = polled.resting(symbol)
    silent: dict[str, Any] = {"drop_before": {"hold": True}}
    polled.venue.faults(faults.fault("cancel", action=silent, symbol=wire(symbol), times=2))
    ask(polled, name)
    polled.wait(name, "CANCELED")
    assert polled.events(name).count("cancel_sent") == 3
    polled.check(name)


def test_d4_a_cancel_in_doubt_goes_by_our_id_and_ends_the_order(polled: Stack, symbol: str) -> None:
    polled.venue.faults(
        faults.lost_answer(symbol=wire(symbol)),
        faults.hidden("query", "open_orders", "all_orders", for_s=8, symbol=wire(symbol)),
    )
    name = polled.submit(symbol, type="limit", price="90")
    polled.wait(name, "UNKNOWN", "RECONCILING")
    ask(polled, name)
    intent = polled.wait(name, "CANCELED")
    lines = intent["transitions"]
    place = [line["event"] for line in lines].index("cancel_sent")
    assert lines[place]["to_state"] in ("UNKNOWN", "RECONCILING")
    assert polled.posts(name) == 1
    polled.check(name)


def test_d4_a_cancel_of_what_never_arrived_ends_it_by_proof_alone(
    polled: Stack, symbol: str
) -> None:
    polled.venue.faults(faults.dropped_before(symbol=wire(symbol)))
    name = polled.submit(symbol)
    polled.wait(name, "UNKNOWN", "RECONCILING")
    ask(polled, name)
    polled.wait(name, "CANCELED")
    events = polled.events(name)
    assert "absent" in events
    assert events.index("absent") < events.index("withdrawn")
    assert (polled.posts(name), polled.orders(name)) == (1, [])


def test_d5_a_cancel_that_the_venue_refuses_for_ever_halts_and_pages_once(
    polled: Stack, symbol: str
) -> None:
    name = polled.resting(symbol)
    polled.venue.faults(
        faults.refused(-2011, "Unknown order sent.", path="cancel", symbol=wire(symbol), times=None)
    )
    ask(polled, name)
    polled.desk.wait(lambda: polled.halted(symbol), f"{symbol} is halted", 60)
    (alert,) = polled.alerts(symbol)
    assert alert["severity"] == "critical"
    assert "Unknown order sent." in alert["message"]
    assert polled.intent(name)["state"] == "LIVE"  # it is still there: no cancel ends it by count
    polled.venue.fill(wire(symbol), client_order_id=name)
    polled.wait(name, "FILLED")
    polled.check(name)
