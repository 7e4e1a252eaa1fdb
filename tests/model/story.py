"""A counterexample, told step by step."""

from __future__ import annotations

from tests.model.world import World

Came = dict[World, tuple[World, str] | None]  # each state: the one before it, and what happened


def story(came: Came, world: World, wrong: str) -> tuple[str, ...]:
    """The numbered steps that led to `world`, each with its tick; the last line says what is wrong.

    That time passes shows in the ticks alone.
    """
    steps = [(world.now, wrong)]
    while (before := came[world]) is not None:
        after, (world, text) = world, before
        if world.now == after.now:
            steps.append((after.now, text))
    return tuple(
        f"{number:2}. tick {tick}: {text}" for number, (tick, text) in enumerate(steps[::-1], 1)
    )
