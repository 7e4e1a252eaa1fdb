"""Rules taken out, one at a time, to see that the search would notice."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from unittest.mock import patch

from django.db import connection

from orders import journal, verdict
from orders.journal import Change, Claimed, Hold, LeaseLostError, Window, batch, lease
from orders.lane import resolver, runner, sender
from orders.lane.context import Lane
from orders.lane.runner import Held, Runner
from orders.models import Intent
from orders.verdict import Facts, LookSight, Verdict
from tests.simulation import database
from tests.simulation.plan import Plan
from venues.gateway import Permit
from venues.profiles import Profile, Rung, UsedId


@dataclass(frozen=True)
class Mutation:
    """What is taken out, by which replacements, and where that can be noticed."""

    rule: str
    patches: Callable[[], Sequence[Any]]
    matters: Callable[[Plan], bool] = lambda plan: True  # False: this plan cannot miss it
    plan: Callable[[Plan], Plan] = lambda plan: plan
    covered_by: str = ""  # the other rule of the pair, taken out alone: that must change nothing
    control: bool = False


def _provable(plan: Plan) -> bool:
    """Absence can be proven, and so wrongly proven."""
    profile = plan.profile
    used = profile.used_id in (UsedId.UNIQUE_WHILE_OPEN, UsedId.UNKNOWN)
    return profile.expiry and profile.whole_life and used and plan.faults.lost > 0.1


def _lists(plan: Plan) -> bool:
    """A proof that rests on lists: every kind of end is in one of them."""
    profile = plan.profile
    return (
        profile.expiry
        and {Rung.OPEN_ORDERS, Rung.CLOSED_ORDERS} <= set(profile.ladder)
        and profile.page_size > 10
        and profile.used_id in (UsedId.UNIQUE_WHILE_OPEN, UsedId.UNKNOWN)
        and plan.faults.lost > 0.1
    )


def _late(plan: Plan) -> bool:
    """Provable, and an order may be out of sight for a while."""
    return _provable(plan) and plan.rules.late_accept_s > 0


def _believing(**changes: int) -> Callable[[Plan], Plan]:
    """The desk believes a profile that is too good; the venue keeps to the true one."""
    return lambda plan: replace(plan, profile=replace(plan.profile, **changes))  # type: ignore[arg-type]


def _one_look(looks: Sequence[LookSight], facts: Facts, profile: Profile) -> tuple[Verdict, str]:
    found, why = verdict.judge(looks, facts, profile)
    if found is not Verdict.INCONCLUSIVE or verdict.no_proof_possible(facts, profile):
        return found, why
    valid = [look for look in looks if verdict.expired_before(look, facts, profile)]
    if any(verdict.empty(look, profile) for look in valid):
        return Verdict.ABSENT, "one look"
    return found, why


def _reversed(plan: Plan) -> Plan:
    ladder = tuple(reversed(plan.profile.ladder))
    return replace(plan, profile=replace(plan.profile, ladder=ladder))


def _permit_from_the_send(lane: Lane, intent: Intent, window: Window) -> Permit:
    permit = _permit(lane, intent, window)
    life_ms = permit.expires_venue_ms - permit.claimed_venue_ms
    now_ms = int(lane.venue_clock.now_ms())
    permit.claimed_venue_ms, permit.expires_venue_ms = now_ms, now_ms + life_ms
    permit.send_before_monotonic_s = lane.deadline()
    return permit


def _permit_of_another_name(lane: Lane, intent: Intent, window: Window) -> Permit:
    permit = _permit(lane, intent, window)
    if permit.attempt > 1:
        permit.client_order_id = permit.client_order_id[:-1] + "abcdefg"[permit.attempt % 7]
    return permit


_permit = sender._permit
_change = sender._change
_consequences = batch._consequences
_claim = journal.claim


def _any_attempt(*given: Any) -> Change:
    return replace(_change(*given), attempt=None)


def _absent_though_known(intent: Intent, *given: Any) -> dict[str, Any]:
    known, intent.known = intent.known, False
    try:
        return _consequences(intent, *given)
    finally:
        intent.known = known


def _claim_afterwards(hold: Hold, window: Window, *, actor: str) -> Claimed:
    """Send first; the claim is on disk a little later, if the process still lives."""
    raw = connection.connection
    assert raw is not None
    image = raw.serialize()
    claimed = _claim(hold, window, actor=actor)
    if not claimed:
        return claimed
    raw.deserialize(image)

    def late() -> None:
        with suppress(LeaseLostError):
            server.call(lambda: _claim(hold, window, actor=actor))

    server = database.Server.running
    server.loop.call_later(server.random.uniform(0.0, 0.3), late)
    return claimed


def _cancel_again(held: Held) -> None:
    if held.task is not None:
        held.task.cancel()


async def _give_back_unless_cancelled(self: Runner, held: Held, clean: bool) -> None:
    account_id = held.hold.account_id
    await self._leases.run(partial(journal.release, held.hold, clean=clean, at=self.clock.now()))
    self._held.pop(account_id, None)
    self._not_before[account_id] = self.clock.monotonic() + runner.RETAKE_S
    self._woken()


def _no_expiry_needed(facts: Facts, profile: Profile) -> str:
    return verdict_no_proof(replace(facts, last_expiry_ms=0), replace(profile, expiry=True))


def _expired_or_none(look: LookSight, facts: Facts, profile: Profile) -> bool:
    return not profile.expiry or verdict_expired(look, facts, profile)


def _empty_however_far(look: LookSight, profile: Profile) -> bool:
    rungs = tuple(replace(rung, covers=True) for rung in look.rungs)
    return verdict_empty(replace(look, rungs=rungs), profile)


def _whatever_its_life(facts: Facts, profile: Profile) -> str:
    return verdict_no_proof(facts, replace(profile, whole_life=True))


def _ends_show_late(plan: Plan) -> Plan:
    """A venue at which no look-up shows an order all its life."""
    lag_s = plan.profile.visibility_lag_ms / 1000
    rules = replace(
        plan.rules, all_orders=False, forget_id_s=0.0, late_end_s=lag_s, late_trade_s=lag_s
    )
    return replace(plan, rules=rules, profile=replace(plan.profile, whole_life=False))


def _ends_show_at_once(plan: Plan) -> Plan:
    """A venue at which the right order of the rungs is enough, whatever shows a whole life."""
    rules = replace(plan.rules, all_orders=False, forget_id_s=0.0, late_end_s=0.0, late_trade_s=0.0)
    return replace(plan, rules=rules, profile=replace(plan.profile, whole_life=False))


def _ends_show_at_once_reversed(plan: Plan) -> Plan:
    return _reversed(_ends_show_at_once(plan))


def _not_in_a_record(hold: Hold) -> None:
    """The fence, but not where answers and looks are recorded."""
    caller = sys._getframe(1).f_code.co_name
    if caller != "record":
        lease_check(hold)


def _without_whole_life() -> list[Any]:
    return [
        patch.object(verdict, "no_proof_possible", _whatever_its_life),
        patch.object(resolver, "no_proof_possible", _whatever_its_life),
    ]


lease_check = lease.check
verdict_no_proof = verdict.no_proof_possible
verdict_expired = verdict.expired_before
verdict_empty = verdict.empty

MUTATIONS: dict[str, Mutation] = {
    "second-look": Mutation(
        "two looks prove absence, not one",
        lambda: [patch.object(resolver, "judge", _one_look)],
        _late,
    ),
    "looks-after-expiry": Mutation(
        "both looks begin after the last attempt's expiry",
        lambda: [patch.object(verdict, "expired_before", lambda *_: True)],
        _provable,
    ),
    "lag-between": Mutation(
        "the looks are a visibility lag apart",
        list,
        _late,
        _believing(visibility_lag_ms=0),
    ),
    "whole-life": Mutation(
        "one look-up shows an order all its life, or nothing is proven",
        _without_whole_life,
        lambda plan: plan.theme == "moving orders",
        _ends_show_late,
    ),
    # Where a look-up shows an order all its life, the order of the rungs changes nothing: both
    # rules are taken out, at venues where the order of the rungs alone would be enough.
    "rung-order": Mutation(
        "rungs are climbed in the direction in which orders move",
        _without_whole_life,
        lambda plan: _lists(plan) and plan.rules.fills_on_look > 0,
        _ends_show_at_once_reversed,
        covered_by="rung-order-control",
    ),
    "rung-order-control": Mutation(
        "nothing: what is left of the rules when the order of the rungs alone must do",
        _without_whole_life,
        lambda plan: _lists(plan) and plan.rules.fills_on_look > 0,
        _ends_show_at_once,
        control=True,
    ),
    "clock-margin": Mutation(
        "the looks leave the clock margin",
        list,
        lambda plan: _late(plan) and plan.faults.venue_jitter_s > 0,
        _believing(clock_margin_ms=0),
    ),
    "window": Mutation(
        "a rung counts only as far as it reaches",
        lambda: [patch.object(verdict, "empty", _empty_however_far)],
        lambda plan: plan.theme == "pages",
    ),
    "expiry-from-claim": Mutation(
        "a request's expiry is counted from the claim",
        lambda: [patch.object(sender, "_permit", _permit_from_the_send)],
        lambda plan: _provable(plan) and plan.faults.stall > 0,
    ),
    "known-never-absent": Mutation(
        "what was known to exist is never absent",
        lambda: [
            patch.object(resolver, "facts_of", lambda i: Facts(i.last_expiry_ms, known=False)),
            patch.object(batch, "_consequences", _absent_though_known),
        ],
        lambda plan: _provable(plan) and plan.rules.vanishes > 0,
    ),
    # A lane asks for an intent again only when its own send has been answered or given up, so an
    # answer to an earlier attempt comes to a former owner, whom the fence keeps from recording it.
    # Both rules are taken out.
    "answers-by-attempt": Mutation(
        "an answer belongs to its attempt",
        lambda: [
            patch.object(sender, "_change", _any_attempt),
            patch.object(lease, "check", _not_in_a_record),
            patch.object(Held, "end", lambda _: None),
            patch.object(runner, "LEASE_S", 1e6),
        ],
        lambda plan: plan.theme == "slow refusals",
        covered_by="answers-by-attempt-control",
    ),
    "answers-by-attempt-control": Mutation(
        "nothing: a former owner may record what it heard, for its own attempt",
        lambda: [
            patch.object(lease, "check", _not_in_a_record),
            patch.object(Held, "end", lambda _: None),
            patch.object(runner, "LEASE_S", 1e6),
        ],
        lambda plan: plan.theme == "slow refusals",
        control=True,
    ),
    "one-send-per-permit": Mutation(
        "a permit allows one request", lambda: [patch.object(Permit, "use", lambda _: None)]
    ),
    "write-ahead": Mutation(
        "the claim is durable before the request leaves",
        lambda: [patch.object(journal, "claim", _claim_afterwards)],
    ),
    "same-id": Mutation(
        "every attempt carries the same client order ID",
        lambda: [patch.object(sender, "_permit", _permit_of_another_name)],
    ),
    "no-end-without-proof": Mutation(
        "without an expiry there is no proof of absence",
        lambda: [
            patch.object(verdict, "no_proof_possible", _no_expiry_needed),
            patch.object(resolver, "no_proof_possible", _no_expiry_needed),
            patch.object(verdict, "expired_before", _expired_or_none),
        ],
        lambda plan: not plan.profile.expiry,
    ),
    "clean-up-in-peace": Mutation(
        "a lane that gives its account back is not cancelled again",
        lambda: [
            patch.object(Held, "end", _cancel_again),
            patch.object(Runner, "_give_back", _give_back_unless_cancelled),
        ],
        lambda plan: plan.faults.freezes + plan.faults.stall > 0,
    ),
    "fencing": Mutation(
        "only the holder of the lease acts",
        lambda: [
            patch.object(lease, "check", lambda _: None),
            patch.object(runner, "LEASE_S", 1e6),
            patch.object(Held, "end", lambda _: None),
        ],
        lambda plan: plan.theme == "late owners" or plan.faults.freezes > 0,
    ),
}


@contextmanager
def taken_out(name: str | None) -> Iterator[Callable[[Plan], Plan]]:
    """Run without the rule; yields what it does to a plan."""
    if name is None:
        yield lambda plan: plan
        return
    with ExitStack() as stack:
        for each in MUTATIONS[name].patches():
            stack.enter_context(each)
        yield MUTATIONS[name].plan
