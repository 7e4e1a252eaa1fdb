"""The search itself: a fixed number of seeds, exact replay, and rules that it misses when gone."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.simulation.mutations import MUTATIONS
from tests.simulation.regressions import CAUGHT, REGRESSIONS

ROOT = Path(__file__).resolve().parents[2]


def simulate(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own: it takes over the clock, the log and the database."""
    return subprocess.run(
        [sys.executable, "-m", "tests.simulation", *words],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=110,
    )


def test_no_seed_breaks_the_promise() -> None:
    done = simulate("--seeds", "400", "--seconds", "80")
    assert done.returncode == 0, done.stdout + done.stderr
    counted = re.search(r"^(\d+) seeds, 0 failed; (\d+) orders", done.stdout, re.MULTILINE)
    assert counted, done.stdout
    assert int(counted[2]) > 0, "nothing was ordered, so nothing was shown"


def test_a_seed_replays_exactly_whatever_the_order_of_hashes() -> None:
    traces = [
        simulate("--seeds", "4", "--jobs", "1", "--json", PYTHONHASHSEED=number).stdout
        for number in ("1", "2")
    ]
    digests = [
        [json.loads(line)["digest"] for line in trace.splitlines() if line.startswith("{")]
        for trace in traces
    ]
    assert len(set(digests[0])) == 4
    assert digests[0] == digests[1]


@pytest.fixture(scope="module")
def kept() -> list[dict[str, Any]]:
    """What the kept seeds show, in one process for all of them."""
    done = simulate("--kept")
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_seed_that_once_found_a_fault_passes(kept: list[dict[str, Any]]) -> None:
    found = [told for told in kept if "rule" not in told]
    assert {told["seed"] for told in found} == set(REGRESSIONS)
    assert [told for told in found if told["violations"]] == []


@pytest.mark.parametrize(("rule", "seed"), CAUGHT.items())
def test_a_rule_that_is_taken_out_is_missed(
    rule: str, seed: int, kept: list[dict[str, Any]]
) -> None:
    """And with the rule the same seed passes, so that nothing else is what it notices."""
    (told,) = [told for told in kept if told.get("rule") == rule]
    assert told["seed"] == seed <= 500
    assert told["matters"], "the search would not try this seed for this rule"
    assert told["missed"], "nothing was noticed"
    assert told["violations"] == []


def test_every_rule_that_can_be_taken_out_has_a_seed_that_notices() -> None:
    assert set(CAUGHT) == {name for name, mutation in MUTATIONS.items() if not mutation.control}


def test_a_failing_seed_says_how_to_replay_it() -> None:
    seed = CAUGHT["write-ahead"]
    done = simulate("--seed", str(seed), "--mutation", "write-ahead")
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"--seed {seed} --mutation write-ahead --story" in done.stdout


def test_a_story_tells_what_happened_line_by_line() -> None:
    done = simulate("--seed", "1", "--story")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^ *\d+\.\d{4}  venue +accepts simd\w{14} as o1$", done.stdout, re.MULTILINE)
    assert re.search(
        r"^ *\d+\.\d{4}  journal +simd\w+#1 claimed -> IN_FLIGHT", done.stdout, re.MULTILINE
    )
    assert re.search(r"^seed 1, trace [0-9a-f]{16}$", done.stdout, re.MULTILINE)
