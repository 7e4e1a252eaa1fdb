"""The world outside the desk: a network that delays without end, and a venue.

A lost request is one that never arrives, a lost answer one that is never heard: a delay without end
needs no step of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from tests.model.settings import Setting
from tests.model.world import (
    CANCELED,
    DEAD,
    FILLED,
    LONG_AGO,
    OPEN,
    Answer,
    Order,
    Request,
    Step,
    World,
)
from venues.profiles import Rung, UsedId


class Seen(StrEnum):
    """Whether a rung shows an order at an instant."""

    MUST = "must"
    MAY = "may"
    NOT = "not"


def steps(world: World, setting: Setting) -> Iterator[Step]:
    """What network and venue may do next, but for time."""
    for request in dict.fromkeys(world.requests):
        yield from _arrivals(world, request, setting)
    for number, order in enumerate(world.orders):
        if order.status == OPEN:
            text = f"the venue fills order {number + 1}"
            yield Step("fill", text, _ended(world, number, FILLED))


def tick(world: World, setting: Setting) -> Step:
    """Time goes on by one tick. What is too old to matter is forgotten, to keep states few."""
    now = world.now + 1
    old = now - setting.horizon
    orders = tuple(
        order._replace(
            placed=order.placed if order.placed > old else LONG_AGO,
            ended=order.ended if order.ended > old else LONG_AGO,
        )
        for order in world.orders
    )
    return Step("tick", f"tick {now}", world._replace(now=now, orders=orders))


def seen(order: Order, rung: Rung, world: World, setting: Setting) -> Seen:
    """Whether the rung shows the order now."""
    late = world.now < order.placed + setting.order_lag
    vanished = setting.amnesia and (world.known or world.heard)
    since_placed = Seen.MAY if late or vanished else Seen.MUST
    if rung is Rung.CLIENT_ID:
        return Seen.NOT if order.status != OPEN and setting.id_forgets else since_placed
    if rung is Rung.OPEN_ORDERS:
        return since_placed if order.status == OPEN else Seen.NOT
    if order.status == OPEN or (rung is Rung.TRADES and order.status != FILLED):
        return Seen.NOT
    if setting.window is not None and order.ended < world.now - setting.window:
        return Seen.NOT
    return since_placed if world.now >= order.ended + setting.fill_lag else Seen.MAY


def could_place(world: World, setting: Setting) -> bool:
    """Whether something that is out, or that a sleeper holds, can still become an order."""
    if world.orders and setting.used_id in (UsedId.REJECTED_FOREVER, UsedId.BURNED):
        return False
    held = [permit for permit in (world.ghost, world.permit) if permit is not None]
    if held and not setting.rules.expiry_from_claim:
        return True
    expiries = [permit.expiry for permit in held] + [item.expiry for item in world.requests]
    return any(_in_time(expiry, world, setting) for expiry in expiries)


def cancel(world: World) -> World:
    """A cancel request is executed: what is open ends unfilled."""
    for number, order in enumerate(world.orders):
        if order.status == OPEN:
            world = _ended(world, number, CANCELED)
    return world


def _in_time(expiry: int, world: World, setting: Setting) -> bool:
    return not setting.expiry or world.now <= expiry + setting.skew


def _arrivals(world: World, request: Request, setting: Setting) -> Iterator[Step]:
    name = f"request {request.attempt}"
    if delay := world.now - (request.expiry - setting.lifetime):
        name += f", which the network has delayed for {delay} {'tick' if delay == 1 else 'ticks'},"
    rest = list(world.requests)
    rest.remove(request)
    after = world._replace(requests=tuple(rest), burned=True)
    if setting.expiry and world.now > request.expiry - setting.skew:
        text = f"{name} arrives; the venue refuses it for its age"
        yield Step("refuse", text, _answered(after, request, "too old"))
    if not _in_time(request.expiry, world, setting):
        return
    if _duplicate(world, request, setting):
        text = f"{name} arrives; the venue calls it a duplicate"
        yield Step("accept", text, _answered(after, request, "duplicate"))
        return
    if setting.rejects:
        text = f"{name} arrives; the venue refuses it for good"
        yield Step("refuse", text, _answered(after, request, "rejected"))
    for status in (FILLED, CANCELED) if setting.ioc else (OPEN,):
        ended = LONG_AGO if status == OPEN else world.now
        order = Order(request.name, status, world.now, ended)
        word = {OPEN: "rests", FILLED: "is filled at once", CANCELED: "is cancelled unfilled"}
        number = len(world.orders) + 1
        text = f"{name} arrives; the venue places order {number}, which {word[status]}"
        placed = after._replace(orders=(*world.orders, order))
        yield Step("accept", text, _answered(placed, request, "accepted"))


def _duplicate(world: World, request: Request, setting: Setting) -> bool:
    mine = [order for order in world.orders if order.name == request.name]
    match setting.used_id:
        case UsedId.REJECTED_FOREVER:
            return bool(mine)
        case UsedId.BURNED:
            return world.burned
        case UsedId.UNIQUE_WHILE_OPEN:
            return any(order.status == OPEN for order in mine)
    return False


def _answered(world: World, request: Request, kind: str) -> World:
    if request.sender == DEAD:
        return world  # nobody listens any more
    answer = Answer(request.attempt, kind, request.sender)
    return world._replace(answers=tuple(sorted((*world.answers, answer))))


def _ended(world: World, number: int, status: str) -> World:
    orders = list(world.orders)
    orders[number] = orders[number]._replace(status=status, ended=world.now)
    return world._replace(orders=tuple(orders))
