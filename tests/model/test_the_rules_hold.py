"""Every state up to the bound, with all the rules in force."""

from __future__ import annotations

from functools import cache

import pytest

from orders.machine import State
from tests.model.catalogue import HALTS, HOLDS, HOLES, NO_PROOF, Hole
from tests.model.explore import Result, explore
from tests.model.properties import violation
from tests.model.settings import Setting
from tests.model.world import FILLED, OPEN, Order, World

FEWEST_STATES = 6_000  # a search that stops early, or explores nothing, must not pass


@cache
def searched(name: str) -> Result:
    return explore(HOLDS[name])


@pytest.mark.parametrize("name", HOLDS)
def test_one_decision_has_one_order_and_none_is_forgotten(name: str) -> None:
    result = searched(name)
    print(f"{name}: {result.states} states, {result.transitions} steps, {result.proofs} proofs")
    assert not result.wrong, "\n".join(result.story)
    assert result.states >= FEWEST_STATES
    assert bool(result.proofs) == (name not in NO_PROOF)


@pytest.mark.parametrize("name", HOLDS)
def test_without_further_faults_everything_ends_or_its_market_halts(name: str) -> None:
    endings = searched(name).endings
    assert endings["stuck"] == 0
    assert endings["ends"] > 1_000
    assert bool(endings["halts"]) == (name in HALTS)


def test_the_search_gets_to_the_places_where_it_could_go_wrong() -> None:
    reached = searched("unique while open").reached
    for place in ("IN_FLIGHT 2", "FILLED 1", "FILLED 2", "REJECTED 2", "DENIED 2", "ACKED 2"):
        assert reached[place], f"{place} is never reached"
    assert searched("three attempts").reached["FILLED 3"]
    assert searched("two proofs of absence").reached["DENIED 2"]
    assert searched("cancels and dates").reached["CANCELED 1"]


def test_the_search_is_the_same_each_time() -> None:
    assert explore(HOLDS["forgets what it acknowledged"]) == searched(
        "forgets what it acknowledged"
    )


@pytest.mark.parametrize("hole", HOLES, ids=lambda hole: hole.rule)
def test_a_known_hole_is_still_there_and_its_rule_would_mend_it(hole: Hole) -> None:
    """When this finds no counterexample any more, the code was mended: move it to HOLDS."""
    found = explore(hole.setting, seek=hole.wrong)
    print("\n".join(found.story))
    assert found.wrong.startswith(hole.wrong)
    mended = explore(hole.mended)
    assert not mended.wrong, "\n".join(mended.story)
    assert mended.states >= FEWEST_STATES
    assert bool(mended.proofs) == (hole.rule != "ladder_shows_ends")  # where none is possible


def _world(state: State, *orders: Order, adopted: bool = False) -> World:
    return World(now=9, state=state, attempt=1, orders=orders, adopted=adopted)


def test_what_must_never_be_is_seen() -> None:
    setting = Setting()
    resting, filled = Order(1, OPEN, 1, -50), Order(1, FILLED, 1, 2)
    assert "TWO" in violation(_world(State.ACKED, filled, resting), setting)
    assert "FORGOTTEN" in violation(_world(State.REJECTED, resting), setting)
    assert "FORGOTTEN" in violation(_world(State.CANCELED, filled, adopted=True), setting)
    assert not violation(_world(State.FILLED, filled, adopted=True), setting)
    assert not violation(_world(State.ACKED, resting, adopted=True), setting)
