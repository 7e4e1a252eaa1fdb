"""What must never be, whatever happens."""

from __future__ import annotations

from orders.machine import TERMINAL, State
from tests.model import venue
from tests.model.settings import Setting
from tests.model.world import CANCELED, FILLED, World

_ENDS = {State.FILLED: FILLED, State.CANCELED: CANCELED}


def violation(world: World, setting: Setting) -> str:
    """What is wrong with this state; "" where nothing is."""
    if len(world.orders) > 1:
        return "TWO ORDERS: the venue has placed two orders for one decision"
    if world.state not in TERMINAL:
        return ""
    if world.orders:
        order = world.orders[0]
        if not world.adopted or _ENDS.get(world.state) != order.status:
            return f"FORGOTTEN: the intent is {world.state}, the venue's order is {order.status}"
    elif venue.could_place(world, setting):
        return f"TOO EARLY: the intent is {world.state}, and a request can still be placed"
    return ""


def quiet(world: World) -> bool:
    """The intent has ended and nothing of it is out: no more can happen."""
    return world.state in TERMINAL and not world.requests and world.ghost is None
