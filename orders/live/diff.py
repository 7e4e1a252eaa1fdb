"""What changed between two ordered lists of rows. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Insert:
    """Rows that come, in order, after the row `after`; None: at the top."""

    after: str | None
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """Applied in this order: remove, replace, insert. A row that moves is removed and inserted."""

    remove: tuple[str, ...]
    replace: tuple[str, ...]
    insert: tuple[Insert, ...]


def difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> Difference:
    """Both map a row's key to its data, in the order of the rows."""
    stay = _longest_in_order(list(old), list(new))
    return Difference(
        remove=tuple(key for key in old if key not in stay),
        replace=tuple(key for key in new if key in stay and old[key] != new[key]),
        insert=tuple(_inserts(new, stay)),
    )


def _inserts(new: Mapping[str, Any], stay: set[str]) -> list[Insert]:
    """One insert for each run of rows that were not there."""
    inserts: list[Insert] = []
    after: str | None = None
    run: list[str] = []
    for key in new:
        if key not in stay:
            run.append(key)
            continue
        if run:
            inserts.append(Insert(after, tuple(run)))
            run = []
        after = key
    if run:
        inserts.append(Insert(after, tuple(run)))
    return inserts


def _longest_in_order(old: Sequence[str], new: Sequence[str]) -> set[str]:
    """The most rows that need not move: a longest increasing subsequence of old places."""
    place = {key: number for number, key in enumerate(old)}
    common = [key for key in new if key in place]
    tails: list[int] = []  # the smallest last place of a run of each length
    ends: list[int] = []  # the index in `common` of that last row
    previous: list[int] = []
    for index, key in enumerate(common):
        length = bisect_left(tails, place[key])
        previous.append(ends[length - 1] if length else -1)
        tails[length : length + 1] = [place[key]]
        ends[length : length + 1] = [index]
    stay: set[str] = set()
    index = ends[-1] if ends else -1
    while index >= 0:
        stay.add(common[index])
        index = previous[index]
    return stay
