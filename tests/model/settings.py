"""What is varied: the venue, the bounds of the search, and the rules that are in force."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property

from venues.profiles import PROFILES, Profile, Rung, UsedId

WHOLE_LADDER = (Rung.CLIENT_ID, Rung.OPEN_ORDERS, Rung.CLOSED_ORDERS, Rung.TRADES)


@dataclass(frozen=True)
class Rules:
    """The rules of the protocol. Each is on; taking one out is setting it to False."""

    second_look: bool = True  # absence takes two looks
    both_after_expiry: bool = True  # and both begin after the last expiry
    lag_between: bool = True  # and a visibility lag lies between them
    rung_order: bool = True  # rungs are climbed in the direction in which orders move
    failed_is_inconclusive: bool = True  # a rung that failed counts for nothing
    clock_margin: bool = True  # the expiry has passed only a clock margin later
    expiry_from_claim: bool = True  # the request carries the expiry of its claim
    window_reach: bool = True  # a rung counts only as far back as it reaches
    window_kinds: bool = True  # and only for the kinds of end that it shows
    known_never_absent: bool = True  # what once existed is never absent
    answers_by_attempt: bool = True  # an answer speaks for its own attempt
    one_send_per_permit: bool = True
    write_ahead: bool = True  # the claim is durable before the request leaves
    same_id: bool = True  # the ID is journaled before the first attempt and never changes
    no_end_without_proof: bool = True  # a cancel or a date ends nothing that may be out
    fence: bool = True  # a deposed lane cannot write to the journal
    # Not in the code yet; see docs/protocol.md, "Holes".
    first_look_waits_a_lag: bool = False  # where a finished order leaves the look-up by ID
    former_owner_is_heard: bool = True  # its evidence counts as "known to exist" too
    ladder_shows_ends: bool = False  # a look-up by ID counts for ends only where it keeps them

    def without(self, *names: str) -> Rules:
        """The same rules with the named ones taken out."""
        assert set(names) <= {item.name for item in fields(self)}, f"no such rule: {names}"
        return replace(self, **dict.fromkeys(names, False))


AS_CODED = Rules()


@dataclass(frozen=True)
class Setting:
    """A venue, its habits, and how far the search goes. Durations in ticks."""

    used_id: UsedId = UsedId.UNIQUE_WHILE_OPEN
    expiry: bool = True  # the venue honours one
    ladder: tuple[Rung, ...] = WHOLE_LADDER
    ioc: bool = False  # the order fills or is cancelled unfilled at once; else it rests
    id_forgets: bool = False  # finished orders are not shown by client ID
    window: int | None = None  # how far back closed orders and trades reach
    amnesia: bool = False  # an order that the journal has heard of may vanish from every look-up
    push: bool = False  # the venue may push that the order exists
    rejects: bool = False  # the venue may refuse a request for good (balance)
    cancel: bool = False  # a person may ask for a cancel
    dated: bool = False  # valid_until may pass
    caps: bool = False  # the desk may halt the market because doubt lasts
    failures: bool = False  # a look-up may fail
    keeps_every_look: bool = False  # also those that the judge is known to leave out

    lifetime: int = 1  # a request's expiry after its claim
    skew: int = 2  # how far the clock that decides may be off
    margin: int = 2  # the desk's clock margin; not below skew
    order_lag: int = 2  # until an accepted order must show
    fill_lag: int = 0  # until an order's end must show
    ticks: int = 6  # bound: the last tick
    returns: int = 1  # bound: returns to INTENT before the market halts, as in the code
    faults: int = 1  # bound: crashes and take-overs
    rules: Rules = field(default=AS_CODED)

    @cached_property
    def lag(self) -> int:
        return max(self.order_lag, self.fill_lag)

    @cached_property
    def horizon(self) -> int:
        """After so many ticks an order's age does not matter any more."""
        return max(self.lag, self.window or 0) + 1

    @cached_property
    def climbed(self) -> tuple[Rung, ...]:
        """The rungs in the order in which the desk climbs them."""
        return self.ladder if self.rules.rung_order else self.ladder[::-1]

    @cached_property
    def one_rung_shows_all(self) -> bool:
        """Whether the look-up by ID shows an order through all of its life."""
        return Rung.CLIENT_ID in self.ladder and not self.id_forgets

    @cached_property
    def profile(self) -> Profile:
        """What the desk knows of the venue, for the real judge. A tick is a millisecond."""
        return replace(
            PROFILES["binance"],
            ladder=self.climbed,
            expiry=self.expiry,
            used_id=self.used_id,
            visibility_lag_ms=self.lag,
            clock_margin_ms=self.margin,
            window_ms=self.window,
        )
