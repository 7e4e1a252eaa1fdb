"""What evidence proves. Every condition of a proof of absence is taken away once."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orders.verdict import Facts, LookSight, RungSight, Sight, Verdict, judge
from venues.profiles import PROFILES, Rung, UsedId

BINANCE = PROFILES["binance"]
EXPIRY = 100_000.0
AFTER = EXPIRY + BINANCE.clock_margin_ms + 1
FACTS = Facts(last_expiry_ms=EXPIRY)


def look(began: float, **sights: Sight) -> LookSight:
    rungs = tuple(RungSight(rung, sights.get(rung.value, Sight.NOTHING)) for rung in BINANCE.ladder)
    return LookSight(began, began + 50, rungs)


FIRST = look(AFTER)
SECOND = look(FIRST.ended_ms + BINANCE.visibility_lag_ms)


def verdict(*looks: LookSight, facts: Facts = FACTS, profile: object = BINANCE) -> Verdict:
    assert isinstance(profile, type(BINANCE))
    return judge(looks, facts, profile)[0]


def test_two_empty_looks_after_the_expiry_and_a_lag_apart_prove_absence() -> None:
    assert verdict(FIRST, SECOND) is Verdict.ABSENT


def test_one_look_is_not_enough() -> None:
    assert verdict(FIRST) is Verdict.INCONCLUSIVE
    assert verdict(SECOND) is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("place", [0, 1])
def test_a_look_begun_before_the_expiry_counts_for_nothing(place: int) -> None:
    looks = [FIRST, SECOND]
    looks[place] = replace(looks[place], began_ms=EXPIRY - 1)
    assert verdict(*looks) is Verdict.INCONCLUSIVE


def test_the_clock_margin_belongs_to_the_expiry() -> None:
    early = look(EXPIRY + BINANCE.clock_margin_ms)
    assert verdict(early, SECOND) is Verdict.INCONCLUSIVE


def test_two_looks_closer_than_the_visibility_lag_are_one() -> None:
    close = look(FIRST.ended_ms + BINANCE.visibility_lag_ms - 1)
    assert verdict(FIRST, close) is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("rung", BINANCE.ladder)
@pytest.mark.parametrize("place", [0, 1])
def test_a_failed_rung_is_never_absence(rung: Rung, place: int) -> None:
    looks = [FIRST, SECOND]
    looks[place] = look(looks[place].began_ms, **{rung.value: Sight.FAILED})
    assert verdict(*looks) is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("rung", range(len(BINANCE.ladder)))
def test_a_rung_that_was_left_out_spoils_the_look(rung: int) -> None:
    short = replace(SECOND, rungs=SECOND.rungs[:rung] + SECOND.rungs[rung + 1 :])
    assert verdict(FIRST, short) is Verdict.INCONCLUSIVE


def test_rungs_out_of_order_spoil_the_look() -> None:
    turned = replace(SECOND, rungs=SECOND.rungs[::-1])
    assert verdict(FIRST, turned) is Verdict.INCONCLUSIVE


def test_a_window_that_does_not_reach_back_spoils_the_look() -> None:
    rungs = (replace(SECOND.rungs[0], covers=False), *SECOND.rungs[1:])
    assert verdict(FIRST, replace(SECOND, rungs=rungs)) is Verdict.INCONCLUSIVE


def test_what_was_known_to_exist_is_never_absent() -> None:
    assert verdict(FIRST, SECOND, facts=replace(FACTS, known=True)) is Verdict.INCONCLUSIVE


def test_an_attempt_without_an_expiry_can_still_arrive() -> None:
    assert verdict(FIRST, SECOND, facts=Facts(last_expiry_ms=None)) is Verdict.INCONCLUSIVE


def test_a_venue_that_honours_no_expiry_gives_no_proof() -> None:
    assert verdict(FIRST, SECOND, profile=replace(BINANCE, expiry=False)) is Verdict.INCONCLUSIVE


def test_where_a_failed_request_burns_its_id_there_is_no_resend() -> None:
    burned = replace(BINANCE, used_id=UsedId.BURNED)
    assert verdict(FIRST, SECOND, profile=burned) is Verdict.INCONCLUSIVE


def test_where_only_executions_show_a_cancelled_order_cannot_be_excluded() -> None:
    profile = replace(BINANCE, ladder=(Rung.OPEN_ORDERS, Rung.TRADES))
    looks = [
        replace(item, rungs=tuple(RungSight(rung, Sight.NOTHING) for rung in profile.ladder))
        for item in (FIRST, SECOND)
    ]
    assert verdict(*looks, profile=profile) is Verdict.INCONCLUSIVE


def test_without_a_rung_that_shows_an_orders_whole_life_there_is_no_proof() -> None:
    assert (
        verdict(FIRST, SECOND, profile=replace(BINANCE, whole_life=False)) is Verdict.INCONCLUSIVE
    )


def test_a_step_of_the_venues_clock_does_not_shorten_the_lag() -> None:
    first = replace(FIRST, began_here_ms=0.0, ended_here_ms=50.0)
    second = replace(SECOND, began_here_ms=60.0, ended_here_ms=100.0)
    assert verdict(first, second) is Verdict.INCONCLUSIVE
    lag = BINANCE.visibility_lag_ms
    assert verdict(first, replace(second, began_here_ms=50.0 + lag)) is Verdict.ABSENT


sights = st.sampled_from(list(Sight))
any_look = st.builds(
    LookSight,
    began_ms=st.floats(0, 300_000),
    ended_ms=st.floats(0, 300_000),
    rungs=st.lists(
        st.builds(RungSight, st.sampled_from(list(Rung)), sights, st.booleans()), max_size=5
    ).map(tuple),
)


@given(st.lists(any_look, max_size=6), st.booleans())
def test_a_match_is_found_whatever_else_was_seen(looks: list[LookSight], known: bool) -> None:
    looks = [*looks, look(5, client_id=Sight.MATCH)]
    assert verdict(*looks, facts=replace(FACTS, known=known)) is Verdict.FOUND


@given(st.lists(any_look, max_size=6))
def test_absence_is_never_said_without_two_whole_looks(looks: list[LookSight]) -> None:
    if verdict(*looks) is Verdict.ABSENT:
        whole = [
            item
            for item in looks
            if tuple(rung.rung for rung in item.rungs) == BINANCE.ladder
            and all(rung.sight is Sight.NOTHING and rung.covers for rung in item.rungs)
            and item.began_ms > EXPIRY + BINANCE.clock_margin_ms
        ]
        assert len(whole) >= 2
