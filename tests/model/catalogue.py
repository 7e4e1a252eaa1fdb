"""What is searched: settings where the rules must hold, rules taken out of them, and holes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tests.model.settings import AS_CODED, Setting
from venues.profiles import Rung, UsedId

SHORT = (Rung.CLIENT_ID, Rung.CLOSED_ORDERS)
NO_ID_LOOKUP = (Rung.OPEN_ORDERS, Rung.CLOSED_ORDERS, Rung.TRADES)
TRADES_ONLY = (Rung.OPEN_ORDERS, Rung.TRADES)

_PLAIN = Setting(ladder=SHORT)
_NO_EXPIRY = Setting(ladder=SHORT, expiry=False, cancel=True, dated=True, ticks=5)

# The rules as they are in the code must hold in each of these.
HOLDS: dict[str, Setting] = {
    # What the venue does with a used ID, with and without an expiry that it honours.
    "unique while open": replace(_PLAIN, rejects=True),
    "rejected for ever": replace(_PLAIN, used_id=UsedId.REJECTED_FOREVER, rejects=True),
    "burned": replace(_PLAIN, used_id=UsedId.BURNED, rejects=True),
    "no rule for used IDs": replace(_PLAIN, used_id=UsedId.UNKNOWN),
    "unique while open, no expiry": replace(_NO_EXPIRY, rejects=True),
    "rejected for ever, no expiry": replace(_NO_EXPIRY, used_id=UsedId.REJECTED_FOREVER),
    "burned, no expiry": replace(_NO_EXPIRY, used_id=UsedId.BURNED),
    # What can be seen, and when.
    "whole ladder": Setting(),
    "finished orders leave the ID look-up": Setting(id_forgets=True),
    "no look-up by ID": Setting(ladder=NO_ID_LOOKUP),
    "ends show late too": replace(_PLAIN, fill_lag=2),
    "windows that close": Setting(ladder=NO_ID_LOOKUP, window=6),
    "windows too short": Setting(ladder=NO_ID_LOOKUP, window=3),
    "look-ups fail": replace(_PLAIN, failures=True),
    "only executions can be looked at": Setting(ladder=TRADES_ONLY, ioc=True),
    "fills at once or is cancelled": replace(_PLAIN, ioc=True),
    "pushes": replace(_PLAIN, push=True),
    "forgets what it acknowledged": replace(_PLAIN, amnesia=True, push=True, faults=0),
    "a former owner hears the answer": replace(_PLAIN, amnesia=True),
    "looks before the expiry are kept": replace(_PLAIN, keeps_every_look=True, faults=0),
    "looks that fall short are kept": Setting(
        ladder=NO_ID_LOOKUP[:2], window=5, keeps_every_look=True, faults=0
    ),
    # What people do, and longer runs.
    "cancels and dates": replace(_PLAIN, cancel=True, dated=True, faults=0, ticks=7),
    "doubt that halts": replace(_PLAIN, caps=True),
    "three attempts": replace(_PLAIN, returns=2),
    "two faults": replace(_PLAIN, faults=2),
    "two proofs of absence": replace(_PLAIN, faults=0, ticks=13),
}

# Where no look can prove absence doubt may end in a halted market. Elsewhere never, but for
# windows that close before the second look.
NO_PROOF = frozenset(
    {
        "burned",
        "unique while open, no expiry",
        "rejected for ever, no expiry",
        "burned, no expiry",
        "windows too short",
        "looks that fall short are kept",
        "only executions can be looked at",
    }
)
HALTS = NO_PROOF | {"windows that close"}


@dataclass(frozen=True)
class Removed:
    """A rule taken out of a setting where it holds, and what must then be found."""

    rule: str
    wrong: str
    inside: str = "unique while open"  # of HOLDS

    @property
    def broken(self) -> Setting:
        return replace(HOLDS[self.inside], rules=AS_CODED.without(self.rule))


TWO, EARLY, STUCK = "TWO ORDERS", "TOO EARLY", "STUCK"

REMOVED: tuple[Removed, ...] = (
    Removed("second_look", TWO),
    Removed("both_after_expiry", TWO),
    Removed("lag_between", TWO),
    Removed("rung_order", TWO, "no look-up by ID"),
    Removed("failed_is_inconclusive", TWO, "look-ups fail"),
    Removed("clock_margin", TWO),
    Removed("expiry_from_claim", TWO),
    Removed("window_reach", TWO, "windows too short"),
    Removed("window_kinds", TWO, "only executions can be looked at"),
    Removed("known_never_absent", TWO, "forgets what it acknowledged"),
    Removed("former_owner_is_heard", TWO, "a former owner hears the answer"),
    Removed("answers_by_attempt", TWO, "three attempts"),
    Removed("one_send_per_permit", TWO),
    Removed("write_ahead", TWO),
    Removed("same_id", TWO),
    Removed("no_end_without_proof", EARLY, "unique while open, no expiry"),
    Removed("no_end_without_proof", "FORGOTTEN", "rejected for ever, no expiry"),
    Removed("fence", STUCK),
)


@dataclass(frozen=True)
class Hole:
    """Where the judge would be wrong, and the rule that would mend it.

    The desk never gets there: a profile without a rung that shows an order all its life is given
    no proof of absence. These settings claim such a rung untruthfully.
    """

    rule: str
    setting: Setting
    wrong: str = TWO

    @property
    def mended(self) -> Setting:
        return replace(self.setting, rules=replace(AS_CODED, **{self.rule: True}))


HOLES: tuple[Hole, ...] = (
    Hole("first_look_waits_a_lag", Setting(ladder=NO_ID_LOOKUP, fill_lag=2, ticks=9, faults=0)),
    Hole(
        "ladder_shows_ends",
        Setting(ladder=(Rung.CLIENT_ID, *TRADES_ONLY), id_forgets=True, ioc=True),
    ),
)
