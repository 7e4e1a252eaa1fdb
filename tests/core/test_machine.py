"""The table of states, and the one function that reads it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orders.machine import (
    ACTIVE,
    TABLE,
    TERMINAL,
    Event,
    IllegalEventError,
    State,
    allowed_moves,
    next_state,
)

# Written down a second time, by hand: (from, event, to). A change of the table must be made twice.
EXPECTED = """
-            submitted          INTENT
-            denied             DENIED
INTENT       claimed            IN_FLIGHT
INTENT       expired            DENIED
INTENT       withdrawn          CANCELED
INTENT       denied             DENIED
INTENT       found              ACKED
IN_FLIGHT    accepted           ACKED
UNKNOWN      accepted           ACKED
IN_FLIGHT    rejected           REJECTED
IN_FLIGHT    not_placed         INTENT
IN_FLIGHT    no_answer          UNKNOWN
IN_FLIGHT    duplicate          UNKNOWN
IN_FLIGHT    owner_lost         UNKNOWN
UNKNOWN      reconcile_started  RECONCILING
RECONCILING  found              ACKED
RECONCILING  absent             INTENT
RECONCILING  inconclusive       UNKNOWN
RECONCILING  owner_lost         UNKNOWN
UNKNOWN      ruled_found        ACKED
UNKNOWN      ruled_absent       CANCELED
RECONCILING  ruled_found        ACKED
RECONCILING  ruled_absent       CANCELED
ACKED        working            LIVE
ACKED        filled             FILLED
ACKED        canceled           CANCELED
ACKED        rejected           REJECTED
LIVE         filled             FILLED
LIVE         canceled           CANCELED
LIVE         rejected           REJECTED
ACKED        lost_sight         UNKNOWN
LIVE         lost_sight         UNKNOWN
RECONCILING  dismissed          FILLED
RECONCILING  dismissed          CANCELED
RECONCILING  dismissed          REJECTED
RECONCILING  dismissed          DENIED
FILLED       contradicted       RECONCILING
CANCELED     contradicted       RECONCILING
REJECTED     contradicted       RECONCILING
DENIED       contradicted       RECONCILING
"""

states = st.sampled_from([None, *State])
events = st.sampled_from(list(Event))


def test_the_table_is_exactly_what_was_agreed() -> None:
    expected = {tuple(line.split()) for line in EXPECTED.strip().splitlines()}
    actual = {
        (source.value if source else "-", event.value, target.value)
        for source, event, target in allowed_moves()
    }
    assert actual == expected


@given(states, events)
def test_whatever_the_table_does_not_list_is_refused(state: State | None, event: Event) -> None:
    if (state, event) in TABLE:
        assert next_state(state, event, State.FILLED) in State
    else:
        with pytest.raises(IllegalEventError):
            next_state(state, event, State.FILLED)


@given(st.sampled_from(sorted(TERMINAL)), events)
def test_only_a_contradiction_leaves_a_terminal_state(state: State, event: Event) -> None:
    if event is Event.CONTRADICTED:
        assert next_state(state, event) is State.RECONCILING
    else:
        with pytest.raises(IllegalEventError):
            next_state(state, event)


@pytest.mark.parametrize("state", list(State))
def test_every_state_has_an_exit_and_an_entrance(state: State) -> None:
    assert any(source is state for source, _ in TABLE)
    assert any(target is state for _, _, target in allowed_moves())


@pytest.mark.parametrize("state", sorted(ACTIVE))
def test_every_active_state_leads_to_an_end(state: State) -> None:
    reached, new = {state}, {state}
    while new:
        new = {to for source, _, to in allowed_moves() if source in new} - reached
        reached |= new
    assert reached & TERMINAL


def test_a_dismissed_contradiction_goes_back_to_where_it_came_from() -> None:
    for former in TERMINAL:
        assert next_state(State.RECONCILING, Event.DISMISSED, former) is former
    for wrong in (None, State.LIVE, State.INTENT):
        with pytest.raises(IllegalEventError):
            next_state(State.RECONCILING, Event.DISMISSED, wrong)


def test_only_a_claim_puts_an_intent_in_flight() -> None:
    ways = [(source, event) for source, event, to in allowed_moves() if to is State.IN_FLIGHT]
    assert ways == [(State.INTENT, Event.CLAIMED)]
