"""Visits every state up to the bound, breadth first, so that a counterexample is a shortest one."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from orders.machine import IN_DOUBT, TERMINAL, State
from tests.model import desk, venue
from tests.model.properties import quiet, violation
from tests.model.settings import Setting
from tests.model.story import Came, story
from tests.model.world import Step, World

# Without faults, the first of these that is possible happens: everything arrives and is heard, the
# lane acts at once, and time goes on only when nothing else is left.
CALM = (
    *("answer", "accept", "refuse", "timeout", "end", "claim", "send"),
    *("cancel", "climb", "track", "look", "fill", "tick"),
)
_RANK = {kind: rank for rank, kind in enumerate(CALM)}


@dataclass
class Result:
    """What a search found. `story` is empty where nothing is wrong."""

    states: int = 0
    transitions: int = 0
    proofs: int = 0  # transitions that prove absence
    endings: Counter[str] = field(default_factory=Counter)  # "ends" or "halts", without faults
    wrong: str = ""
    story: tuple[str, ...] = ()
    reached: Counter[str] = field(default_factory=Counter)  # by state and attempt: "FILLED 2"


def start(setting: Setting) -> World:
    return World(faults=setting.faults)


def possible(world: World, setting: Setting) -> Iterator[Step]:
    """Every step from here, time included."""
    if quiet(world):
        return
    yield from desk.steps(world, setting)
    yield from venue.steps(world, setting)
    # Before the first claim nothing depends on the time, so that it may be taken as tick 0.
    if world.state is not State.INTENT or world.attempt or world.permit is not None:
        yield venue.tick(world, setting)


def explore(setting: Setting, *, seek: str = "") -> Result:
    """Search all states with now <= setting.ticks; stop at the first violation.

    `seek` is the word that a violation must begin with, to find a special one; "" takes any.
    """
    first = start(setting)
    came: Came = {first: None}
    waiting, result, calm = deque([first]), Result(), Calm(setting)
    while waiting:
        world = waiting.popleft()
        result.states += 1
        result.reached[f"{world.state} {world.attempt}"] += 1
        wrong = violation(world, setting) or calm.stuck(world, result)
        if wrong and wrong.startswith(seek):
            result.wrong, result.story = wrong, story(came, world, wrong)
            return result
        for step in possible(world, setting):
            result.transitions += 1
            result.proofs += "proven absent" in step.text
            if step.world not in came and step.world.now <= setting.ticks:
                came[step.world] = (world, step.text)
                waiting.append(step.world)
    return result


class Calm:
    """Whether things come to their end once faults stop.

    From each state two fault-free futures are run, by the same steps: what is out arrives, or it
    is lost and the sleeper never wakes. The intent must end, or be in doubt for so long that the
    desk halts its market; anything else is stuck.
    """

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._known: dict[World, str] = {}
        proof = setting.lifetime + setting.margin + 3 * setting.lag + 3
        self._patience = proof * (setting.returns + 2)

    def stuck(self, world: World, result: Result) -> str:
        if world.look is not None:
            return ""  # the calm future climbs on, to a state that is examined itself
        futures = [(world, "everything arrives")]
        if world.requests or world.answers or world.ghost or world.sleeper:
            lost = world._replace(requests=(), answers=(), ghost=None, sleeper=False)
            futures.append((lost, "what is out is lost"))
        for future, name in futures:
            ending = self._run(future)
            result.endings[ending] += 1
            if ending == "stuck":
                return f"STUCK: no more faults, {name}, and it stays {world.state} for ever"
        return ""

    def _run(self, world: World) -> str:
        path, until, looked = [], world.now + self._patience, -1
        ending = "stuck"
        while True:
            if world in self._known:
                ending = self._known[world]
                break
            path.append(world)
            if world.state in TERMINAL:
                ending = "ends"
                break
            if world.now >= until:
                ending = "halts" if world.state in IN_DOUBT else "stuck"
                break
            step = self._next(world, looked == world.now)
            looked = world.now if step.kind == "look" else looked
            world = step.world
        self._known.update(dict.fromkeys(path, ending))
        return ending

    def _next(self, world: World, looked: bool) -> Step:
        """One whole look a tick is enough."""
        steps = [step for step in possible(world, self._setting) if step.kind in _RANK]
        steps = [step for step in steps if step.kind != "look" or not looked]
        return min(steps, key=lambda step: _RANK[step.kind])
