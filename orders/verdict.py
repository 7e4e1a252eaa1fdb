"""Evidence -> found, absent or inconclusive. Pure: the caller brings the clocks.

Every instant here is in milliseconds on the venue's clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from venues.profiles import Profile, Rung, UsedId


class Verdict(StrEnum):
    FOUND = "found"
    ABSENT = "absent"
    INCONCLUSIVE = "inconclusive"


class Sight(StrEnum):
    """What one rung of one look showed."""

    MATCH = "match"  # an order with our client order ID, symbol and side
    NOTHING = "nothing"  # it answered, and nothing of it is ours
    FAILED = "failed"  # no answer, or one that cannot be trusted


@dataclass(frozen=True, slots=True)
class RungSight:
    """`covers` is False where the rung's window does not reach back to the first attempt."""

    rung: Rung
    sight: Sight
    covers: bool = True


@dataclass(frozen=True, slots=True)
class LookSight:
    """One whole look. `began_ms` is a lower bound: the clock's uncertainty is subtracted."""

    began_ms: float
    ended_ms: float  # an upper bound
    rungs: tuple[RungSight, ...]
    # The same on our monotonic clock, which no re-read of the venue's clock can bend.
    began_here_ms: float | None = None
    ended_here_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """What the journal knows of the intent.

    last_expiry_ms: the latest instant up to which any attempt could be accepted; None where an
    attempt went out without an expiry.
    known: something once showed that the order exists (or a contradiction did).
    """

    last_expiry_ms: float | None
    known: bool = False


def expired_before(look: LookSight, facts: Facts, profile: Profile) -> bool:
    """Whether the look began when no attempt could be accepted any more."""
    if not profile.expiry or facts.last_expiry_ms is None:
        return False
    return look.began_ms > facts.last_expiry_ms + profile.clock_margin_ms


def empty(look: LookSight, profile: Profile) -> bool:
    """Whether all rungs were climbed in order, reached far enough and matched nothing."""
    return tuple(rung.rung for rung in look.rungs) == profile.ladder and all(
        rung.sight is Sight.NOTHING and rung.covers for rung in look.rungs
    )


def judge(looks: Sequence[LookSight], facts: Facts, profile: Profile) -> tuple[Verdict, str]:
    """What the looks prove, and why, in words for the journal.

    Absent needs two empty looks, both begun after the last attempt's expiry plus the clock margin,
    the second at least the venue's visibility lag after the end of the first.
    """
    if any(rung.sight is Sight.MATCH for look in looks for rung in look.rungs):
        return Verdict.FOUND, "the venue shows an order with our client order ID"
    if refusal := no_proof_possible(facts, profile):
        return Verdict.INCONCLUSIVE, refusal
    valid = [look for look in looks if expired_before(look, facts, profile)]
    if not valid:
        return Verdict.INCONCLUSIVE, "no look began after the last attempt had expired"
    whole = [look for look in valid if empty(look, profile)]
    for first in whole:
        for second in whole:
            if _apart(first, second, profile):
                return (
                    Verdict.ABSENT,
                    "two whole looks after the expiry, a lag apart, found nothing",
                )
    if len(whole) < len(valid):
        return Verdict.INCONCLUSIVE, "a look after the expiry failed or was not whole"
    return Verdict.INCONCLUSIVE, "a second look is needed, a visibility lag after the first"


def _apart(first: LookSight, second: LookSight, profile: Profile) -> bool:
    """Whether the second began at least the venue's visibility lag after the end of the first."""
    lag_ms = profile.visibility_lag_ms
    here = True
    if first.ended_here_ms is not None and second.began_here_ms is not None:
        here = second.began_here_ms >= first.ended_here_ms + lag_ms
    return here and second.began_ms >= first.ended_ms + lag_ms


def no_proof_possible(facts: Facts, profile: Profile) -> str:
    """Why no number of empty looks can prove absence here; "" where they can."""
    if facts.known:
        return "the order was known to exist; not finding it proves nothing"
    if profile.used_id is UsedId.BURNED:
        return "the venue burns the ID of a failed request; a resend is impossible"
    if not profile.expiry or facts.last_expiry_ms is None:
        return "the venue honours no expiry; a late request can still arrive"
    if not profile.whole_life:
        return "no single look-up shows an order all its life; it could pass between two of them"
    if not _shows_cancelled(profile):
        return "only executions can be looked at; an order cancelled unfilled would not show"
    return ""


def _shows_cancelled(profile: Profile) -> bool:
    return Rung.CLIENT_ID in profile.ladder or Rung.CLOSED_ORDERS in profile.ladder
