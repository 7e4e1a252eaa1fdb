"""One decision, one name, for ever."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from orders.identity import client_order_id, decision_key, new_prefix
from venues.profiles import PROFILES, IdFormat

LEGAL = {
    IdFormat.ALNUM18: r"[a-z][a-z0-9]{17}",
    IdFormat.HEX32: r"[0-9a-f]{32}",
    IdFormat.HEX32_0X: r"0x[0-9a-f]{32}",
    IdFormat.INT45: r"[1-9][0-9]{0,13}",
    IdFormat.INT63: r"[1-9][0-9]{0,18}",
}

names = st.text(min_size=1, max_size=20)
instants = st.datetimes(
    min_value=datetime(2020, 1, 1),  # noqa: DTZ001 - hypothesis adds the zone
    max_value=datetime(2100, 1, 1),  # noqa: DTZ001
    timezones=st.just(UTC),
)
decisions = st.fixed_dictionaries(
    {
        "account": names,
        "strategy": names,
        "symbol": names,
        "side": st.sampled_from(["buy", "sell"]),
        "decided_at": instants,
        "key": st.one_of(st.just(""), names),
    }
)
prefixes = st.binary(min_size=4, max_size=8).map(new_prefix)


@given(decisions, prefixes, st.sampled_from(list(IdFormat)))
def test_the_same_decision_has_the_same_id(
    decision: dict[str, Any], prefix: str, form: IdFormat
) -> None:
    again = {**decision}
    elsewhere = timezone(timedelta(hours=5, minutes=30))
    again["decided_at"] = decision["decided_at"].astimezone(elsewhere)
    assert client_order_id(prefix, decision_key(**decision), form) == client_order_id(
        prefix, decision_key(**again), form
    )


@given(decisions, decisions)
def test_different_decisions_have_different_ids(one: dict[str, Any], two: dict[str, Any]) -> None:
    assume(_named(one) != _named(two))
    assert decision_key(**one) != decision_key(**two)
    assert client_order_id("abcd", decision_key(**one)) != client_order_id(
        "abcd", decision_key(**two)
    )


def _named(decision: dict[str, Any]) -> tuple[Any, ...]:
    """What names a decision: its key, or its circumstances."""
    if decision["key"]:
        return ("key", decision["account"], decision["strategy"], decision["key"])
    return tuple(decision[name] for name in ("account", "strategy", "symbol", "side", "decided_at"))


@pytest.mark.parametrize("field", ["account", "strategy", "symbol", "side", "decided_at"])
def test_each_part_of_a_decision_counts(field: str) -> None:
    at = datetime(2026, 1, 31, 12, tzinfo=UTC)
    decision: dict[str, Any] = {
        "account": "main", "strategy": "s", "symbol": "BTC/USDT", "side": "buy", "decided_at": at,
    }  # fmt: skip
    other = at + timedelta(microseconds=1) if field == "decided_at" else "other"
    assert decision_key(**decision) != decision_key(**{**decision, field: other})


def test_parts_cannot_be_shifted_into_each_other() -> None:
    at = datetime(2026, 1, 31, 12, tzinfo=UTC)
    one = decision_key(account="ab", strategy="c", symbol="X", side="buy", decided_at=at)
    two = decision_key(account="a", strategy="bc", symbol="X", side="buy", decided_at=at)
    assert one != two


def test_a_naive_instant_is_refused() -> None:
    with pytest.raises(ValueError, match="UTC offset"):
        decision_key(
            account="a",
            strategy="s",
            symbol="X",
            side="buy",
            decided_at=datetime(2026, 1, 1),  # noqa: DTZ001 - that is the point
        )


@given(decisions, prefixes, st.sampled_from(list(IdFormat)))
def test_every_id_is_legal_in_its_form(
    decision: dict[str, Any], prefix: str, form: IdFormat
) -> None:
    name = client_order_id(prefix, decision_key(**decision), form)
    assert re.fullmatch(LEGAL[form], name)
    if form is IdFormat.INT45:
        assert int(name) < 1 << 45
    if form is IdFormat.INT63:
        assert int(name) < 1 << 63


@pytest.mark.parametrize("exchange", sorted(PROFILES))
def test_every_profile_names_a_form_that_is_checked_here(exchange: str) -> None:
    assert PROFILES[exchange].id_format in LEGAL


@given(decisions, prefixes, prefixes)
def test_two_desks_never_share_an_id(decision: dict[str, Any], mine: str, yours: str) -> None:
    assume(mine != yours)
    key = decision_key(**decision)
    for form in IdFormat:
        assert client_order_id(mine, key, form) != client_order_id(yours, key, form)


def test_the_id_begins_with_the_desks_prefix_and_reveals_nothing_else() -> None:
    at = datetime(2026, 1, 31, 12, tzinfo=UTC)
    key = decision_key(
        account="main", strategy="mean", symbol="BTC/USDT", side="buy", decided_at=at
    )
    name = client_order_id("qzxw", key)
    assert name.startswith("qzxw")
    assert not any(word in name for word in ("main", "mean", "btc", "buy"))


def test_the_derivation_never_changes() -> None:
    """A changed derivation would let every remembered decision through once more."""
    at = datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC)
    key = decision_key(account="main", strategy="s1", symbol="BTC/USDT", side="buy", decided_at=at)
    named = decision_key(
        account="main", strategy="s1", symbol="BTC/USDT", side="buy", decided_at=at, key="k-1"
    )
    assert (client_order_id("abcd", key), client_order_id("abcd", named)) == (
        "abcd44vuw73row67f7",
        "abcdurzjn3qk7x4yie",
    )
