"""C: streams that say too little or too much. Polling is always there."""

from __future__ import annotations

from typing import Any

import pytest

from tests.stack.conftest import Stack, wire
from tests.support import simulator as faults


def test_c1_a_silent_stream_hides_no_fill(main: Stack, symbol: str) -> None:
    silence: dict[str, Any] = {"stream_silence": {"for_s": 3}}
    main.venue.faults(faults.fault("create", action=silence, symbol=wire(symbol)))
    name = main.resting(symbol)
    main.venue.fill(wire(symbol), client_order_id=name)
    main.wait(name, "FILLED")
    main.check(name)


def test_c3_a_fill_that_comes_twice_is_booked_once(main: Stack, symbol: str) -> None:
    twice: dict[str, Any] = {"stream_duplicate": True}
    main.venue.faults(faults.fault(None, action=twice, symbol=wire(symbol), times=None))
    before = main.market(symbol)["position"]
    name = main.resting(symbol)
    main.venue.fill(wire(symbol), client_order_id=name, quantity="0.4")
    main.venue.fill(wire(symbol), client_order_id=name, quantity="0.6")
    intent = main.wait(name, "FILLED")
    assert len(intent["fills"]) == 2
    assert float(main.market(symbol)["position"]) - float(before) == pytest.approx(1.0)
    main.check(name)


def test_c2_a_fill_that_the_stream_loses_is_found_among_the_trades(
    main: Stack, symbol: str
) -> None:
    lost: dict[str, Any] = {"stream_drop_event": {"kind": "TRADE"}}
    main.venue.faults(faults.fault(None, action=lost, symbol=wire(symbol), ordinal=2))
    name = main.resting(symbol)
    for quantity in ("0.2", "0.3", "0.5"):
        main.venue.fill(wire(symbol), client_order_id=name, quantity=quantity)
    intent = main.wait(name, "FILLED")
    assert sorted(fill["quantity"] for fill in intent["fills"]) == ["0.2", "0.3", "0.5"]
    main.check(name)
