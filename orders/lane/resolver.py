"""One intent in doubt: look, judge, decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from orders import journal
from orders.journal import Change, Halt
from orders.lane.absorb import absorb, is_ours, sighting
from orders.lane.context import Lane
from orders.lane.sender import MAX_RETURNS
from orders.machine import IN_DOUBT, Event, MarketState, Note, State
from orders.models import Intent
from orders.prepared import Prepared
from orders.verdict import Facts, LookSight, RungSight, Sight, Verdict, judge, no_proof_possible
from venues.gateway import Evidence, Look, OrderReport
from venues.profiles import Rung

BACKOFF_S = (0.25, 0.5, 1.0, 2.0, 3.0)
HALTED_BACKOFF_S = 5.0
HALTED_BACKOFF_MOST_S = 15.0
UNPROVABLE_BACKOFF_MOST_S = 60.0  # where no number of empty looks can end the doubt
MOST_UNKNOWN_ORDERS = 20  # orders behind unknown trades that one look asks for
SINCE_MARGIN_MS = 60_000


_HALTED: Prepared[int] = Prepared(
    lambda intent_id: Intent.objects.filter(
        pk=intent_id, market__state=MarketState.HALTED
    ).values_list("pk", flat=True)
)
_EXPLAINED: Prepared[str] = Prepared(
    lambda market_id, ids: Intent.objects.filter(
        market_id=market_id, venue_order_id__in=ids
    ).values_list("venue_order_id", flat=True)
)


@dataclass(slots=True)
class Climb:
    """One whole look: what each rung showed, and the order where one matched."""

    sight: LookSight
    evidence: list[dict[str, Any]]
    match: OrderReport | None = None
    match_evidence: Evidence | None = None
    source: str = ""

    @property
    def failed(self) -> bool:
        return any(rung.sight is Sight.FAILED for rung in self.sight.rungs)


@dataclass(slots=True)
class Episode:
    """The looks since the doubt began, in this process."""

    looks: list[LookSight] = field(default_factory=list)
    tries: int = 0
    after_halt: int = 0


async def resolve(lane: Lane, intent_id: int) -> None:
    """Look until the truth is known. Ends when the intent is in doubt no more."""
    episode = Episode()
    while (intent := lane.book.get(intent_id)) is not None and State(intent.state) in IN_DOUBT:
        await lane.wait_limit()
        if State(intent.state) is State.UNKNOWN:
            intent = await _start(lane, intent)
        climb = await look(lane, intent)
        if await _decide(lane, intent, climb, episode):
            return
        await _pause(lane, intent_id, episode)


async def prove_first(lane: Lane, intent_id: int) -> None:
    """Look for an intent that a lost journal may have sent already, before its first send.

    Whatever that journal sent was claimed before the restore was noticed.
    """
    restored_at = lane.account.restored_at
    if restored_at is None:
        return
    facts = Facts(None)
    if lane.gateway.profile.expiry:
        restored_ms = restored_at.timestamp() * 1000 + lane.venue_clock.offset_ms(lane.clock.now())
        facts = Facts(restored_ms + lane.account.request_expiry_ms)
    episode = Episode()
    while (intent := lane.book.get(intent_id)) is not None and State(intent.state) is State.INTENT:
        await lane.wait_limit()
        climb = await look(lane, intent)
        if climb.match is not None:
            seen = sighting(climb.match, climb.source, climb.match_evidence)
            await absorb(lane, intent_id, seen)
            return
        episode.looks.append(climb.sight)
        episode.tries += 1
        verdict, why = judge(episode.looks, facts, lane.gateway.profile)
        if verdict is Verdict.ABSENT:
            await _clear(lane, intent_id, {"looks": climb.evidence, "why": why})
            return
        await lane.sleep_unless_nudged(intent.market_id, BACKOFF_S[-1])
        await _refresh(lane, intent_id)


async def _clear(lane: Lane, intent_id: int, evidence: dict[str, Any]) -> None:
    await lane.database.run(
        lambda: journal.clear(
            intent_id, hold=lane.hold, actor=lane.actor, at=lane.clock.now(), evidence=evidence
        )
    )


async def _refresh(lane: Lane, intent_id: int) -> None:
    """It may have been withdrawn, denied or out of date meanwhile."""
    lane.book.keep([await lane.database.run(lambda: Intent.objects.get(pk=intent_id))])


async def _start(lane: Lane, intent: Intent) -> Intent:
    done = await lane.recorder.write(
        Change(intent.pk, Event.RECONCILE_STARTED, expect=frozenset({State.UNKNOWN}))
    )
    return done[0].intent


async def _decide(lane: Lane, intent: Intent, climb: Climb, episode: Episode) -> bool:
    """Act on one look. True where the doubt is over."""
    if climb.match is not None:
        seen = sighting(climb.match, climb.source, climb.match_evidence)
        await absorb(lane, intent.pk, seen)
        return not await _still_in_doubt(lane, intent.pk, climb, episode)
    episode.looks.append(climb.sight)
    episode.tries += 1
    current = lane.book.get(intent.pk)
    if current is None or State(current.state) is not State.RECONCILING:
        return current is None or State(current.state) not in IN_DOUBT
    verdict, why = judge(episode.looks, facts_of(current), lane.gateway.profile)
    if verdict is Verdict.ABSENT:
        await _absent(lane, current, climb, why)
        return True
    await _inconclusive(lane, current, climb, why)
    return False


async def _still_in_doubt(lane: Lane, intent_id: int, climb: Climb, episode: Episode) -> bool:
    """Whether what was met could not be adopted: it belongs to another intent."""
    current = lane.book.get(intent_id)
    if current is None or State(current.state) not in IN_DOUBT:
        return False
    episode.tries += 1
    await _inconclusive(lane, current, climb, "the order that was met belongs to another intent")
    return True


async def _absent(lane: Lane, intent: Intent, climb: Climb, why: str) -> None:
    halts = []
    if intent.returns >= MAX_RETURNS:
        text = f"{intent.client_order_id} was proven absent {intent.returns + 1} times"
        halts = [Halt(intent.market_id, text, kind="absent", intent_id=intent.pk)]
    await lane.recorder.write(
        Change(
            intent.pk,
            Event.ABSENT,
            expect=frozenset({State.RECONCILING}),
            attempt=intent.attempt,
            reason=why,
            evidence={"looks": climb.evidence},
        ),
        halts=halts,
    )


async def _inconclusive(lane: Lane, intent: Intent, climb: Climb, why: str) -> None:
    """Note the look. A failed one goes back to UNKNOWN; `ageing` halts what lasts too long."""
    evidence = {"looks": climb.evidence}
    if climb.failed or no_proof_possible(facts_of(intent), lane.gateway.profile):
        change = Change(
            intent.pk,
            Event.INCONCLUSIVE,
            expect=frozenset({State.RECONCILING}),
            reason=why,
            evidence=evidence,
        )
    else:
        change = Change(intent.pk, Note.LOOKED, reason=why, evidence=evidence)
    await lane.recorder.write(change)


def facts_of(intent: Intent) -> Facts:
    return Facts(last_expiry_ms=intent.last_expiry_ms, known=intent.known)


async def _pause(lane: Lane, intent_id: int, episode: Episode) -> None:
    """Sleep until the next look can tell more, or somebody asks for one."""
    intent = lane.book.get(intent_id)
    if intent is None:
        return
    if await lane.database.run(lambda: _is_halted(intent_id)):
        episode.after_halt += 1
        unprovable = no_proof_possible(facts_of(intent), lane.gateway.profile)
        most = UNPROVABLE_BACKOFF_MOST_S if unprovable else HALTED_BACKOFF_MOST_S
        delay = min(HALTED_BACKOFF_S * 2 ** min(episode.after_halt - 1, 5), most)
    else:
        delay = BACKOFF_S[min(episode.tries, len(BACKOFF_S)) - 1]
        delay = min(delay, _useful_in_s(lane, intent, episode.looks) or delay)
    await lane.sleep_unless_nudged(intent.market_id, delay)


def _useful_in_s(lane: Lane, intent: Intent, looks: Sequence[LookSight]) -> float:
    """Seconds until a look can count for a proof; 0 where none can or one can at once."""
    profile, now = lane.gateway.profile, lane.venue_clock.at_least_ms()
    if no_proof_possible(facts_of(intent), profile) or intent.last_expiry_ms is None:
        return 0.0
    ready = intent.last_expiry_ms + profile.clock_margin_ms + 1
    valid = [look for look in looks if look.began_ms >= ready]
    if valid:
        ready = int(valid[0].ended_ms + profile.visibility_lag_ms) + 1
    return max(0.0, (ready - now) / 1000)


def _is_halted(intent_id: int) -> bool:
    return _HALTED.any(intent_id)


async def look(lane: Lane, intent: Intent) -> Climb:
    """Climb every rung in order until one matches. The clock is compared first."""
    compared = lane.venue_clock.age_s <= 1.0
    if not compared:
        await lane.limiter.request()
        compared = await lane.learn_clock()
    # The venue's clock may have stepped: a look whose instant is not known proves nothing.
    began = lane.venue_clock.at_least_ms() if compared else float("-inf")
    began_here = lane.clock.monotonic() * 1000
    rungs: list[RungSight] = []
    evidence: list[dict[str, Any]] = []
    match, source = None, ""
    for rung in lane.gateway.profile.ladder:
        sight, match, source = await _climb(lane, intent, rung, evidence)
        rungs.append(sight)
        if match is not None or lane.limited:
            break
        if sight.sight is Sight.FAILED:
            break  # the look is not whole any more: spare the venue the rest
    ended, ended_here = lane.venue_clock.at_most_ms(), lane.clock.monotonic() * 1000
    seen = LookSight(began, ended, tuple(rungs), began_here, ended_here)
    if match is None:
        return Climb(seen, evidence)
    return Climb(seen, evidence, match[0], match[1], source)


async def _climb(
    lane: Lane, intent: Intent, rung: Rung, evidence: list[dict[str, Any]]
) -> tuple[RungSight, tuple[OrderReport, Evidence] | None, str]:
    await lane.limiter.request()
    answer = await ask(lane, intent, rung)
    evidence.append({"rung": rung.value, **answer.evidence.as_json()})
    if not answer.answered:
        return RungSight(rung, Sight.FAILED), None, ""
    for report in answer.reports:
        if is_ours(report, intent):
            return RungSight(rung, Sight.MATCH), (report, answer.evidence), f"look:{rung.value}"
    if rung is Rung.TRADES:
        return await _behind_trades(lane, intent, answer, evidence)
    return RungSight(rung, Sight.NOTHING, covers=answer.complete), None, ""


async def ask(lane: Lane, intent: Intent, rung: Rung) -> Look:
    since = _since_ms(lane, intent)
    answer = await lane.gateway.look(
        rung,
        intent.symbol,
        client_order_id=intent.client_order_id if rung is Rung.CLIENT_ID else "",
        since_venue_ms=since if rung in (Rung.CLOSED_ORDERS, Rung.TRADES) else None,
    )
    await lane.heed(answer.limited_until_desk_ms)
    return answer


def _since_ms(lane: Lane, intent: Intent) -> int:
    """Before the first attempt could arrive, on the venue's clock."""
    now = lane.clock.now()
    offset = lane.venue_clock.offset_ms(now)
    return int(intent.created_at.timestamp() * 1000 + offset - SINCE_MARGIN_MS)


async def _behind_trades(
    lane: Lane, intent: Intent, answer: Look, evidence: list[dict[str, Any]]
) -> tuple[RungSight, tuple[OrderReport, Evidence] | None, str]:
    """Ask for the order behind each execution that no order of the journal explains."""
    ids = {trade.venue_order_id for trade in answer.trades if trade.side == intent.side}
    unknown = sorted(ids - await lane.database.run(lambda: _known_orders(intent, ids)))
    if len(unknown) > MOST_UNKNOWN_ORDERS:
        return RungSight(Rung.TRADES, Sight.FAILED), None, ""
    for venue_order_id in unknown:
        await lane.limiter.request()
        behind = await lane.gateway.look(
            Rung.VENUE_ID, intent.symbol, venue_order_id=venue_order_id
        )
        await lane.heed(behind.limited_until_desk_ms)
        evidence.append({"rung": "order_behind_trade", **behind.evidence.as_json()})
        for report in behind.reports:
            if is_ours(report, intent):
                found = (report, behind.evidence)
                return RungSight(Rung.TRADES, Sight.MATCH), found, "look:trades"
        if not behind.answered or not behind.reports:
            return RungSight(Rung.TRADES, Sight.FAILED), None, ""
    return RungSight(Rung.TRADES, Sight.NOTHING, covers=answer.complete), None, ""


def _known_orders(intent: Intent, ids: set[str]) -> set[str]:
    return set(_EXPLAINED.rows(intent.market_id, ids))
