"""The desk: one journal, the lane that owns it, and a deposed lane that may sleep and wake.

Every change of state goes through the real table, `orders.machine.next_state`.
"""

from __future__ import annotations

from collections.abc import Iterator

from orders.machine import AT_VENUE, IN_DOUBT, TERMINAL, Event, State, next_state
from orders.verdict import Verdict
from tests.model import proof, venue
from tests.model.settings import Setting
from tests.model.venue import Seen
from tests.model.world import (
    CANCELED,
    DEAD,
    FILLED,
    GHOST,
    LANE,
    Answer,
    Look,
    Past,
    Permit,
    Request,
    Step,
    World,
)
from venues.profiles import Rung, UsedId


def steps(world: World, setting: Setting) -> Iterator[Step]:
    """What the desk, its people and its faults may do next."""
    yield from _waiting(world, setting)
    yield from _sending(world, setting)
    yield from _answers(world, setting)
    yield from _looking(world, setting)
    yield from _tracking(world, setting)
    yield from _people(world, setting)
    yield from _faults(world, setting)
    yield from _ghost(world, setting)


def move(world: World, event: Event) -> World:
    """One journaled change of state, with what follows from the event alone."""
    state = next_state(world.state, event)
    known = world.known or event in (Event.ACCEPTED, Event.FOUND, Event.CONTRADICTED)
    returned = state is State.INTENT
    keeps_looking = state in IN_DOUBT
    return world._replace(
        state=state,
        known=known,
        returns=world.returns + returned,
        permit=None if world.permit is not None and world.permit.sends else world.permit,
        look=world.look if keeps_looking else None,
        looks=world.looks if keeps_looking else (),
    )


def exists(world: World) -> World:
    """The venue shows our order: adopt it."""
    if world.state in TERMINAL:
        world = move(world, Event.CONTRADICTED)._replace(halted=True)
    if world.state in AT_VENUE:
        return world
    found = world.state in (State.INTENT, State.RECONCILING)
    return move(world, Event.FOUND if found else Event.ACCEPTED)._replace(adopted=True)


def _returned(world: World, event: Event, setting: Setting) -> World:
    """Back to INTENT; all returns share one bound, then the market halts and denies it."""
    over = world.returns >= setting.returns
    world = move(world, event)
    return move(world._replace(halted=True), Event.DENIED) if over else world


def _waiting(world: World, setting: Setting) -> Iterator[Step]:
    """Claim what waits, or end what may not be sent any more."""
    if world.state is not State.INTENT or world.permit is not None:
        return
    if world.cancel:
        yield Step("end", "the lane withdraws it: CANCELED", move(world, Event.WITHDRAWN))
    elif world.stale:
        yield Step("end", "the lane ends it: out of date, DENIED", move(world, Event.EXPIRED))
    elif world.halted:
        yield Step("end", "its market is halted: DENIED", move(world, Event.DENIED))
    else:
        yield Step("claim", *_claimed(world, setting, LANE))


def _claimed(world: World, setting: Setting, who: str) -> tuple[str, World]:
    attempt, expiry = world.attempt + 1, world.now + setting.lifetime
    permit = Permit(attempt, 1 if setting.rules.same_id else attempt, expiry)
    text = f"the lane claims attempt {attempt}, which expires at tick {expiry}"
    if not setting.rules.write_ahead:
        return text + " (not journaled yet)", world._replace(permit=permit)
    world = _journal_claim(world, permit, setting)
    if who == GHOST:
        world = world._replace(ghost=permit, sleeper=False, foreign=True)
        return "the deposed lane wakes: " + text.removeprefix("the lane "), world
    return text, world._replace(permit=permit, name_lost=False, foreign=False)


def _journal_claim(world: World, permit: Permit, setting: Setting) -> World:
    last = max(permit.expiry, world.expiry or 0) if setting.expiry else None
    return move(world, Event.CLAIMED)._replace(attempt=permit.attempt, expiry=last)


def _sending(world: World, setting: Setting) -> Iterator[Step]:
    permit = world.permit
    if permit is None:
        return
    unjournaled = world.state is State.INTENT and not setting.rules.write_ahead
    if permit.sends == 0 or (permit.sends == 1 and not setting.rules.one_send_per_permit):
        again = " again, under the same permit" if permit.sends else ""
        text = f"the lane sends request {permit.attempt}{again}"
        spent = permit._replace(sends=permit.sends + 1)
        keep = unjournaled or (spent.sends == 1 and not setting.rules.one_send_per_permit)
        yield Step("send", text, _sent(world, permit, LANE, setting, spent if keep else None))
    waits = world.state is State.IN_FLIGHT and permit.attempt == world.attempt
    if waits and permit.sends == 0 and world.now > permit.expiry:
        text = f"too late to send request {permit.attempt}: not placed"
        late = _returned(world._replace(permit=None), Event.NOT_PLACED, setting)
        yield Step("claim", text, late)
    if unjournaled and permit.sends:
        text = f"the lane journals the claim of attempt {permit.attempt}"
        yield Step("send", text, _journal_claim(world._replace(permit=None), permit, setting))


def _sent(
    world: World, permit: Permit, sender: str, setting: Setting, left: Permit | None
) -> World:
    expiry = permit.expiry if setting.rules.expiry_from_claim else world.now + setting.lifetime
    request = Request(permit.attempt, permit.name, expiry, sender)
    world = world._replace(requests=tuple(sorted((*world.requests, request))))
    return world._replace(permit=left) if sender == LANE else world._replace(ghost=None)


def _answers(world: World, setting: Setting) -> Iterator[Step]:
    """An answer is heard, or the wait for one ends."""
    for answer in dict.fromkeys(world.answers):
        rest = list(world.answers)
        rest.remove(answer)
        heard = world._replace(answers=tuple(rest))
        text = f"the lane hears the answer to request {answer.attempt}: {answer.kind}"
        if answer.sender == GHOST:
            text = f"the deposed lane hears {answer.kind} for request {answer.attempt}: evidence"
            after = heard._replace(heard=world.heard or answer.kind == "accepted")
        else:
            after = _digested(heard, answer, setting)
        yield Step("answer", f"{text} ({after.state})", after)
    if world.state is State.IN_FLIGHT and (world.permit is None or world.permit.sends):
        # Only the lane that claimed it waits for its answer.
        kind = "ghost" if world.foreign else "timeout"
        text = f"no answer to attempt {world.attempt} in time: UNKNOWN"
        yield Step(kind, text, move(world, Event.NO_ANSWER)._replace(permit=None))


def _digested(world: World, answer: Answer, setting: Setting) -> World:
    """An acceptance is true whatever attempt it answers; all else is about its own attempt."""
    if answer.kind == "accepted":
        return exists(world)
    stale = answer.attempt != world.attempt and setting.rules.answers_by_attempt
    if world.state is not State.IN_FLIGHT or stale:
        return world
    if answer.kind == "rejected":
        return move(world, Event.REJECTED)
    if answer.kind == "too old":
        return _returned(world, Event.NOT_PLACED, setting)
    known = world.known or setting.used_id is not UsedId.BURNED
    return move(world, Event.DUPLICATE)._replace(known=known)


def _looking(world: World, setting: Setting) -> Iterator[Step]:
    if world.state not in IN_DOUBT:
        return
    if world.look is None:
        begun = world
        if world.state is State.UNKNOWN:
            begun = move(world, Event.RECONCILE_STARTED)
        yield from _climb(begun._replace(look=Look(world.now, 0, True)), setting, "a look begins; ")
    else:
        yield from _climb(world, setting, "")


def _climb(world: World, setting: Setting, prefix: str) -> Iterator[Step]:
    """The next rung of the look under way."""
    look = world.look
    assert look is not None
    rung = setting.climbed[look.rungs]
    name = f"{prefix}{rung.value.replace('_', ' ')}"
    mine = [] if world.name_lost else [venue.seen(o, rung, world, setting) for o in world.orders]
    kind = "look" if prefix else "climb"
    if Seen.MUST in mine or Seen.MAY in mine:
        yield Step(kind, f"{name}: found, adopted", exists(world))
    if Seen.MUST not in mine:
        covers = look.covers and _reaches(world, rung, setting)
        climbed = world._replace(look=Look(look.began, look.rungs + 1, covers))
        yield Step(kind, *_climbed(climbed, setting, f"{name}: nothing"))
    if setting.failures:
        if setting.rules.failed_is_inconclusive:
            past = Past(look.began, world.now, look.covers, look.rungs)
            yield Step("failed", *_looked(world, setting, past, f"{name}: failed"))
        else:
            climbed = world._replace(look=look._replace(rungs=look.rungs + 1))
            text, after = _climbed(climbed, setting, f"{name}: failed, taken for nothing")
            yield Step("failed", text, after)


def _reaches(world: World, rung: Rung, setting: Setting) -> bool:
    """Whether the rung's window goes back to the first attempt, which was claimed at tick 0."""
    windowed = rung in (Rung.CLOSED_ORDERS, Rung.TRADES)
    return setting.window is None or not windowed or world.now <= setting.window


def _climbed(world: World, setting: Setting, text: str) -> tuple[str, World]:
    """After an empty rung: go on, or judge the whole look."""
    look = world.look
    assert look is not None
    if look.rungs < len(setting.climbed):
        return text, world
    past = Past(look.began, world.now, look.covers)
    return _looked(world, setting, past, f"{text}; the look is empty")


def _looked(world: World, setting: Setting, past: Past, text: str) -> tuple[str, World]:
    """Act on a look that has ended without a match."""
    if proof.verdict(world, setting, past) is Verdict.ABSENT:
        after = _returned(world, Event.ABSENT, setting)
        return f"{text}; proven absent: {after.state}", after
    kept = proof.worth_keeping(world, setting, past)
    world = world._replace(look=None, looks=kept)
    if past.failed is not None or proof.hopeless(world, setting):
        world = move(world, Event.INCONCLUSIVE)
    return f"{text}; inconclusive", world


def _tracking(world: World, setting: Setting) -> Iterator[Step]:
    """Follow an adopted order to its end. The venue answers about an order that it shows."""
    if world.state not in AT_VENUE or not world.orders:
        return
    status = world.orders[0].status
    if status == FILLED:
        yield Step("track", "the lane sees it filled: FILLED", move(world, Event.FILLED))
    if status == CANCELED:
        yield Step("track", "the lane sees it cancelled: CANCELED", move(world, Event.CANCELED))
    if setting.amnesia:
        text = "the venue does not know the order any more: UNKNOWN"
        yield Step("amnesia", text, move(world, Event.LOST_SIGHT))


def _people(world: World, setting: Setting) -> Iterator[Step]:
    """A cancel, a date that passes, doubt that lasts, and a push."""
    ended = world.state in TERMINAL
    if setting.cancel and not world.cancel and not ended:
        yield Step("ask", "a person asks for a cancel", world._replace(cancel=True))
    if world.cancel and (world.state in AT_VENUE or world.state in IN_DOUBT):
        after = venue.cancel(world)
        if after is not world:
            yield Step("cancel", "the cancel arrives; the venue cancels the order", after)
    if setting.dated and not world.stale and not ended:
        yield Step("ask", "the decision's valid_until passes", world._replace(stale=True))
    if world.state in IN_DOUBT and not world.halted and setting.caps:
        text = "doubt has lasted too long: the market halts"
        yield Step("halt", text, world._replace(halted=True))
    if not setting.rules.no_end_without_proof:
        yield from _ends_by_absence(world)
    if setting.push and world.orders and not world.name_lost and not world.adopted:
        yield Step("push", "the venue pushes that the order exists", exists(world))


def _ends_by_absence(world: World) -> Iterator[Step]:
    """What the rules forbid: a cancel or a date ends what one empty look did not find."""
    looked = world.state in IN_DOUBT and world.look is None and world.looks
    if looked and (world.cancel or world.stale):
        state = State.CANCELED if world.cancel else State.DENIED
        after = world._replace(state=state, looks=())
        yield Step("end", f"a look found nothing, so it is ended: {state}", after)


def _faults(world: World, setting: Setting) -> Iterator[Step]:
    if not world.faults or world.state in TERMINAL:
        return
    yield Step(
        "fault", "the lane is killed; its successor recovers", _succeeded(world, DEAD, setting)
    )
    if not world.sleeper and world.ghost is None:
        text = "the lane falls asleep past its lease; another takes over and recovers"
        slept = _succeeded(world, GHOST, setting)
        ghost = world.permit if world.permit is not None and not world.permit.sends else None
        sleeper = ghost is None and not setting.rules.fence
        yield Step("fault", text, slept._replace(ghost=ghost, sleeper=sleeper))


def _succeeded(world: World, former: str, setting: Setting) -> World:
    """A new owner: memory is gone, what was under way is in doubt."""
    requests = tuple(
        sorted(r._replace(sender=former) if r.sender == LANE else r for r in world.requests)
    )
    answers = tuple(
        sorted(
            a._replace(sender=former) if a.sender == LANE else a
            for a in world.answers
            if a.sender != LANE or former != DEAD
        )
    )
    if world.state in (State.IN_FLIGHT, State.RECONCILING):
        world = move(world, Event.OWNER_LOST)
    return world._replace(
        permit=None,
        look=None,
        looks=(),
        name_lost=not setting.rules.same_id and world.attempt > 0,
        requests=requests,
        answers=answers,
        faults=world.faults - 1,
    )


def _ghost(world: World, setting: Setting) -> Iterator[Step]:
    if world.ghost is not None:
        text = f"the sleeper wakes and sends request {world.ghost.attempt}"
        yield Step("ghost", text, _sent(world, world.ghost, GHOST, setting, None))
    if world.sleeper and world.state is State.INTENT and world.permit is None:
        yield Step("ghost", *_claimed(world, setting, GHOST))
