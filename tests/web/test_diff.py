"""What changed between two lists, applied, gives the second."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from orders.live.diff import Difference, difference

KEYS = st.lists(st.sampled_from("abcdefghijkl"), unique=True)
LISTS = KEYS.flatmap(
    lambda keys: st.lists(st.integers(0, 2), min_size=len(keys), max_size=len(keys)).map(
        lambda values: dict(zip(keys, values, strict=True))
    )
)


def applied(old: dict[str, int], new: dict[str, int], found: Difference) -> dict[str, int]:
    """As a browser does it."""
    rows = [(key, value) for key, value in old.items() if key not in found.remove]
    rows = [(key, new[key] if key in found.replace else value) for key, value in rows]
    for insert in found.insert:
        keys = [key for key, _ in rows]
        place = 0 if insert.after is None else keys.index(insert.after) + 1
        rows[place:place] = [(key, new[key]) for key in insert.keys]
    return dict(rows)


@given(LISTS, LISTS)
def test_the_browser_ends_with_the_new_list(old: dict[str, int], new: dict[str, int]) -> None:
    result = applied(old, new, difference(old, new))
    assert list(result.items()) == list(new.items())


@given(LISTS)
def test_equal_lists_differ_in_nothing(rows: dict[str, int]) -> None:
    assert difference(rows, dict(rows)) == Difference((), (), ())


def test_only_the_row_that_moves_is_moved() -> None:
    old = dict.fromkeys("abcdef", 0)
    found = difference(old, dict.fromkeys("eabcdf", 0))
    assert (found.remove, found.replace) == (("e",), ())
    assert [(insert.after, insert.keys) for insert in found.insert] == [(None, ("e",))]
