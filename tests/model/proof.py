"""The real judge, asked with ticks for milliseconds.

A rule is taken out by lying to the judge: about the profile, the facts or the looks. The judge
itself, `orders.verdict.judge`, is the code that runs in the desk.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from orders.verdict import (
    Facts,
    LookSight,
    RungSight,
    Sight,
    Verdict,
    empty,
    expired_before,
    judge,
    no_proof_possible,
)
from tests.model.settings import Setting
from tests.model.world import Past, World
from venues.profiles import Profile, Rung


def verdict(world: World, setting: Setting, last: Past) -> Verdict:
    """What the lane's looks prove, with the one that ends now."""
    return _verdict(world.looks, last, _facts(world, setting), setting)


def hopeless(world: World, setting: Setting) -> str:
    """Why no look can prove absence; "" where one can."""
    return no_proof_possible(_facts(world, setting), _profile(setting))


def worth_keeping(world: World, setting: Setting, last: Past) -> tuple[Past, ...]:
    """The looks that a later verdict may rest on, with the one that ends now.

    Of two that count, the one that ended first does whatever the other does, so that one of each
    kind is enough. What does not count is left out, to keep states few, but for the setting that
    keeps every kind of look to show that this changes nothing.
    """
    facts = _facts(world, setting)
    counts, kind = _counts(last, facts, setting)
    if not counts or any(_counts(item, facts, setting)[1] == kind for item in world.looks):
        return world.looks
    return (*world.looks, last)


@cache
def _counts(past: Past, facts: Facts, setting: Setting) -> tuple[bool, tuple[bool, bool, bool]]:
    """Whether the judge may rest on this look, and its kind."""
    rules, profile = setting.rules, _profile(setting)
    sight = _sight(0, past, setting)
    late = expired_before(sight, facts, profile)
    needed = (late or not rules.both_after_expiry) and empty(sight, profile)
    counts = needed or setting.keeps_every_look or not rules.no_end_without_proof
    return counts, (late, past.covers, past.failed is None)


def _facts(world: World, setting: Setting) -> Facts:
    rules, expiry = setting.rules, world.expiry
    if expiry is not None and rules.first_look_waits_a_lag and not setting.one_rung_shows_all:
        expiry += setting.lag
    known = world.known or (rules.former_owner_is_heard and world.heard)
    return Facts(last_expiry_ms=expiry, known=known and rules.known_never_absent)


@cache
def _profile(setting: Setting) -> Profile:
    rules, profile = setting.rules, setting.profile
    if not rules.lag_between:
        profile = replace(profile, visibility_lag_ms=0)
    if not rules.clock_margin:
        profile = replace(profile, clock_margin_ms=0)
    if not rules.window_kinds and Rung.CLOSED_ORDERS not in profile.ladder:
        profile = replace(profile, ladder=(*profile.ladder, Rung.CLOSED_ORDERS))
    if rules.ladder_shows_ends and setting.id_forgets:
        # The look-up by ID passes for one of open orders: the judge must not count it for ends.
        kept = tuple(rung for rung in profile.ladder if rung is not Rung.CLIENT_ID)
        profile = replace(profile, ladder=kept)
    return profile


@cache
def _verdict(earlier: tuple[Past, ...], last: Past, facts: Facts, setting: Setting) -> Verdict:
    rules, profile = setting.rules, _profile(setting)
    looks = [_sight(at, past, setting) for at, past in enumerate((*earlier, last))]
    if not rules.both_after_expiry and expired_before(looks[-1], facts, profile):
        facts = replace(facts, last_expiry_ms=-100)  # asked of the last look alone
    if not rules.second_look:
        later = last.ended + profile.visibility_lag_ms
        looks.append(replace(looks[-1], began_ms=later, ended_ms=later))
    return judge(looks, facts, profile)[0]


def _sight(at: int, past: Past, setting: Setting) -> LookSight:
    """A look that matched nothing. A match never gets here: the order is adopted at once.

    Looks within one tick still follow one another and take a moment each.
    """
    ladder = _profile(setting).ladder
    covers = past.covers or not setting.rules.window_reach
    rungs = [RungSight(rung, Sight.NOTHING, covers) for rung in ladder[: past.failed]]
    if past.failed is not None:
        rungs.append(RungSight(ladder[past.failed], Sight.FAILED))
    moment = at / 100 - 0.5
    return LookSight(past.began + moment, past.ended + moment + 0.005, tuple(rungs))
