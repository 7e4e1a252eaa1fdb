"""One state of the model: what the journal, the lanes, the network and the venue hold.

Plain tuples, so that a state can be compared and hashed. Instants are whole ticks. There is one
decision; the desk's clock and the clock that the venue shows are the same, and the part of the
venue that decides about an expiry may be `skew` ticks off.
"""

from __future__ import annotations

from typing import NamedTuple

from orders.machine import State

LANE, GHOST, DEAD = "lane", "ghost", "dead"  # who sent: the owner, a deposed sleeper, nobody left
OPEN, FILLED, CANCELED = "open", "filled", "canceled"
LONG_AGO = -50  # every instant too old to matter is the same one


class Permit(NamedTuple):
    """A claimed attempt whose request has not left yet."""

    attempt: int
    name: int  # the client order ID
    expiry: int
    sends: int = 0  # more than 0 only where a rule is taken out


class Request(NamedTuple):
    """A create request on its way to the venue."""

    attempt: int
    name: int
    expiry: int
    sender: str


class Answer(NamedTuple):
    """A venue's answer on its way back."""

    attempt: int
    kind: str  # "accepted" | "rejected" | "too old" | "duplicate"
    sender: str


class Order(NamedTuple):
    """An order at the venue. `ended` is LONG_AGO while it is open."""

    name: int
    status: str
    placed: int
    ended: int


class Look(NamedTuple):
    """A look under way: how many rungs were climbed, all of them empty so far."""

    began: int
    rungs: int
    covers: bool


class Past(NamedTuple):
    """A look that ended without a match; `failed` is the number of the rung that failed."""

    began: int
    ended: int
    covers: bool
    failed: int | None = None


class World(NamedTuple):
    """Everything. The first group is the journal, and survives a crash."""

    now: int = 0
    state: State = State.INTENT
    attempt: int = 0
    returns: int = 0
    known: bool = False
    expiry: int | None = None  # the latest over all attempts; None: none is honoured
    adopted: bool = False  # a venue order ID is journaled
    cancel: bool = False  # a cancel was asked for
    stale: bool = False  # valid_until has passed
    halted: bool = False
    heard: bool = False  # a former owner's evidence says that the order exists

    permit: Permit | None = None  # the lane's memory
    look: Look | None = None
    looks: tuple[Past, ...] = ()  # those that a later verdict may rest on
    name_lost: bool = False  # only where the ID is not journaled

    foreign: bool = False  # the claim in flight is a deposed lane's; only without the fence
    ghost: Permit | None = None  # what a deposed, sleeping lane still holds
    sleeper: bool = False  # there is such a lane

    requests: tuple[Request, ...] = ()
    answers: tuple[Answer, ...] = ()

    orders: tuple[Order, ...] = ()
    burned: bool = False  # a request with our ID was processed, whatever came of it
    faults: int = 0  # crashes and take-overs that may still happen


class Step(NamedTuple):
    """Something that may happen: a kind for the scheduler, words for people, and what follows."""

    kind: str
    text: str
    world: World
