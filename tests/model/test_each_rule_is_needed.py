"""A rule is taken out, and the search finds what goes wrong then; the same setting holds with it.

What the model cannot tell about rules, because it leaves them out or because nothing changes:

* That a lane looks at its own deadline before it sends changes nothing here: it may fall asleep
  between that look and the send, so that safety rests on the expiry. It is not modelled.
* The fence (the epoch that every transaction compares) is needed so that nothing stays IN_FLIGHT
  for ever. No second order follows from its absence alone, while the rest is in force.
* "The same ID on every attempt" is needed in the form in which it is taken out here: the ID is in
  the journal before the first send. A fresh journaled ID for each attempt would do no harm where
  the earlier attempt was proven absent, and the code resends nowhere else.
* What becomes of an order after its end was journaled (the watch for late orders) is never called
  upon while the venue keeps its word; it is there for venues that do not.
"""

from __future__ import annotations

from dataclasses import fields

import pytest

from tests.model.catalogue import HOLDS, HOLES, REMOVED, Removed
from tests.model.explore import explore
from tests.model.settings import AS_CODED, Rules

FEWEST_STEPS = 3


@pytest.mark.parametrize("removed", REMOVED, ids=lambda item: f"{item.rule}, {item.inside}")
def test_without_it_the_search_finds_a_counterexample(removed: Removed) -> None:
    result = explore(removed.broken, seek=removed.wrong)
    print(f"without {removed.rule}: {result.states} states\n" + "\n".join(result.story))
    assert len(result.story) >= FEWEST_STEPS, f"{removed.rule} makes no difference"
    last = result.story[-1]
    assert removed.wrong in last
    assert result.wrong in last


def test_every_rule_is_taken_out_once() -> None:
    rules = {item.name for item in fields(Rules) if getattr(AS_CODED, item.name)}
    assert {removed.rule for removed in REMOVED} == rules
    assert {hole.rule for hole in HOLES} == {item.name for item in fields(Rules)} - rules


def test_each_is_taken_out_of_a_setting_in_which_it_holds() -> None:
    for removed in REMOVED:
        assert removed.inside in HOLDS
        assert removed.broken != HOLDS[removed.inside]
