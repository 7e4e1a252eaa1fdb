"""The states of an intent, the events that move it, and the table that says which may.

Pure. The table is data; `next_state` is the only reader, and whatever it does not list is refused.
"""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """Where an intent stands."""

    INTENT = "INTENT"  # durable, waiting; nothing of it is at the venue
    IN_FLIGHT = "IN_FLIGHT"  # claimed; a request may be on its way
    UNKNOWN = "UNKNOWN"  # a request may have been executed; nobody is looking right now
    RECONCILING = "RECONCILING"  # the venue is being asked
    ACKED = "ACKED"  # the order exists at the venue
    LIVE = "LIVE"  # the order rests or is partly filled
    FILLED = "FILLED"
    CANCELED = "CANCELED"  # ended without (all of) its execution
    REJECTED = "REJECTED"  # definitely refused by the venue
    DENIED = "DENIED"  # refused by the desk, never at the venue


class Event(StrEnum):
    """What happened to an intent."""

    SUBMITTED = "submitted"  # admitted by intake
    DENIED = "denied"  # refused by the desk, or its market was halted while it waited
    CLAIMED = "claimed"  # the lane takes it, to send it
    EXPIRED = "expired"  # valid_until passed before it could be sent
    WITHDRAWN = "withdrawn"  # cancel asked while nothing of it was at the venue
    ACCEPTED = "accepted"  # the venue's answer or push says that the order exists
    REJECTED = "rejected"  # a listed, definite refusal
    NOT_PLACED = "not_placed"  # this attempt provably was not and cannot be placed
    NO_ANSWER = "no_answer"  # anything that is not listed as definite
    DUPLICATE = "duplicate"  # the venue knows the client order ID already
    OWNER_LOST = "owner_lost"  # the lane that drove it is gone
    RECONCILE_STARTED = "reconcile_started"  # the lane begins to look
    FOUND = "found"  # a look met the order
    ABSENT = "absent"  # proven: not there, and cannot come any more
    INCONCLUSIVE = "inconclusive"  # a look could not tell
    RULED_FOUND = "ruled_found"  # a person's verdict
    RULED_ABSENT = "ruled_absent"  # a person's verdict
    WORKING = "working"  # the venue reports it open
    FILLED = "filled"  # executed in full, all fills booked
    CANCELED = "canceled"  # ended at the venue with what was filled, all fills booked
    LOST_SIGHT = "lost_sight"  # the venue stopped knowing the order
    CONTRADICTED = "contradicted"  # evidence against a terminal state
    DISMISSED = "dismissed"  # a person: the contradiction was nothing


# Notes are journaled like events but never change the state.
class Note(StrEnum):
    """What is worth a line in the journal without being a change of state."""

    FILL = "fill"  # executions were booked
    LOOKED = "looked"  # a look-up answered; nothing decided yet
    EVIDENCE = "evidence"  # an answer that came when the truth was known, or to a former owner
    CANCEL_REQUESTED = "cancel_requested"
    CANCEL_SENT = "cancel_sent"  # what the venue said to a cancel request


TERMINAL = frozenset({State.FILLED, State.CANCELED, State.REJECTED, State.DENIED})
ACTIVE = frozenset(State) - TERMINAL
AT_VENUE = frozenset({State.ACKED, State.LIVE})
IN_DOUBT = frozenset({State.UNKNOWN, State.RECONCILING})  # and IN_FLIGHT past its time-out

# None stands for "not there yet" as a from-state, and for "the former terminal state" as a target.
TABLE: dict[tuple[State | None, Event], State | None] = {
    (None, Event.SUBMITTED): State.INTENT,
    (None, Event.DENIED): State.DENIED,
    (State.INTENT, Event.CLAIMED): State.IN_FLIGHT,
    (State.INTENT, Event.EXPIRED): State.DENIED,
    (State.INTENT, Event.WITHDRAWN): State.CANCELED,
    (State.INTENT, Event.DENIED): State.DENIED,
    # The look before a first send met it: only after a restore from a backup.
    (State.INTENT, Event.FOUND): State.ACKED,
    (State.IN_FLIGHT, Event.ACCEPTED): State.ACKED,
    (State.IN_FLIGHT, Event.REJECTED): State.REJECTED,
    (State.IN_FLIGHT, Event.NOT_PLACED): State.INTENT,
    (State.IN_FLIGHT, Event.NO_ANSWER): State.UNKNOWN,
    (State.IN_FLIGHT, Event.DUPLICATE): State.UNKNOWN,
    (State.IN_FLIGHT, Event.OWNER_LOST): State.UNKNOWN,
    (State.UNKNOWN, Event.ACCEPTED): State.ACKED,
    (State.UNKNOWN, Event.RECONCILE_STARTED): State.RECONCILING,
    (State.UNKNOWN, Event.RULED_FOUND): State.ACKED,
    (State.UNKNOWN, Event.RULED_ABSENT): State.CANCELED,
    (State.RECONCILING, Event.FOUND): State.ACKED,
    (State.RECONCILING, Event.ABSENT): State.INTENT,
    (State.RECONCILING, Event.INCONCLUSIVE): State.UNKNOWN,
    (State.RECONCILING, Event.OWNER_LOST): State.UNKNOWN,
    (State.RECONCILING, Event.RULED_FOUND): State.ACKED,
    (State.RECONCILING, Event.RULED_ABSENT): State.CANCELED,
    (State.RECONCILING, Event.DISMISSED): None,
    (State.ACKED, Event.WORKING): State.LIVE,
    (State.ACKED, Event.FILLED): State.FILLED,
    (State.ACKED, Event.CANCELED): State.CANCELED,
    (State.ACKED, Event.REJECTED): State.REJECTED,
    (State.ACKED, Event.LOST_SIGHT): State.UNKNOWN,
    (State.LIVE, Event.FILLED): State.FILLED,
    (State.LIVE, Event.CANCELED): State.CANCELED,
    (State.LIVE, Event.REJECTED): State.REJECTED,
    (State.LIVE, Event.LOST_SIGHT): State.UNKNOWN,
    (State.FILLED, Event.CONTRADICTED): State.RECONCILING,
    (State.CANCELED, Event.CONTRADICTED): State.RECONCILING,
    (State.REJECTED, Event.CONTRADICTED): State.RECONCILING,
    (State.DENIED, Event.CONTRADICTED): State.RECONCILING,
}


class IllegalEventError(Exception):
    """The table does not list this event in this state."""

    def __init__(self, state: State | None, event: Event) -> None:
        super().__init__(f"{event.value} is not possible in {state.value if state else 'no state'}")
        self.state = state
        self.event = event


def next_state(state: State | None, event: Event, former: State | None = None) -> State:
    """The state that `event` leads to from `state`.

    `former` is the terminal state that a contradiction reopened; only `dismissed` needs it.
    Raises IllegalEventError for every pair that the table does not list.
    """
    if (state, event) not in TABLE:
        raise IllegalEventError(state, event)
    target = TABLE[state, event]
    if target is None:
        if former not in TERMINAL:
            raise IllegalEventError(state, event)
        return former
    return target


def allowed_moves() -> list[tuple[State | None, Event, State]]:
    """Every (from, event, to) that can be journaled, for the database's own check."""
    moves: list[tuple[State | None, Event, State]] = []
    for (state, event), target in TABLE.items():
        targets = sorted(TERMINAL) if target is None else [target]
        moves += [(state, event, to) for to in targets]
    return moves


class MarketState(StrEnum):
    """Whether a market takes orders. BLOCKED is derived from its intents, never stored."""

    OPEN = "OPEN"
    HALTED = "HALTED"


class AlertState(StrEnum):
    OPEN = "OPEN"
    ACKNOWLEDGED = "ACKNOWLEDGED"  # somebody looks after it; it is not over
    RESOLVED = "RESOLVED"


class Act(StrEnum):
    """Journal entries about something else than an intent."""

    HALTED = "halted"  # market
    RESUMED = "resumed"  # market
    RECONCILE_REQUESTED = "reconcile_requested"  # market
    RAISED = "raised"  # alert
    RAISED_AGAIN = "raised_again"  # alert
    ACKNOWLEDGED = "acknowledged"  # alert
    RESOLVED = "resolved"  # alert
    LEASE_TAKEN = "lease_taken"  # account
    LEASE_RELEASED = "lease_released"  # account
    RECOVERED = "recovered"  # account
    LIMITED = "limited"  # account: the venue asked us to wait
    RESTORED = "restored"  # account: the journal came from a backup


# What may happen to a market and to an alert: (from, act) -> to.
MARKET_TABLE: dict[tuple[MarketState, Act], MarketState] = {
    (MarketState.OPEN, Act.HALTED): MarketState.HALTED,
    (MarketState.HALTED, Act.RESUMED): MarketState.OPEN,
}
ALERT_TABLE: dict[tuple[AlertState | None, Act], AlertState] = {
    (None, Act.RAISED): AlertState.OPEN,
    (AlertState.OPEN, Act.ACKNOWLEDGED): AlertState.ACKNOWLEDGED,
    (AlertState.OPEN, Act.RESOLVED): AlertState.RESOLVED,
    (AlertState.ACKNOWLEDGED, Act.RESOLVED): AlertState.RESOLVED,
}
