"""The search itself: a fixed number of seeds, exact replay, and rules that it misses when gone."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

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
    done = simulate("--seeds", "100", "--seconds", "90")
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


@pytest.mark.parametrize("seed", REGRESSIONS)
def test_a_seed_that_once_found_a_fault_passes(seed: int) -> None:
    done = simulate("--seed", str(seed))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("rule", "seed"), CAUGHT.items())
def test_a_rule_that_is_taken_out_is_missed(rule: str, seed: int) -> None:
    """And with the rule the same seed passes, so that nothing else is what it notices."""
    done = simulate("--seed", str(seed), "--mutation", rule)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"--seed {seed} --mutation {rule} --story" in done.stdout
    assert simulate("--seed", str(seed)).returncode == 0


def test_a_story_tells_what_happened_line_by_line() -> None:
    done = simulate("--seed", "1", "--story")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^ *\d+\.\d{4}  venue +accepts simd\w{14} as o1$", done.stdout, re.MULTILINE)
    assert re.search(
        r"^ *\d+\.\d{4}  journal +simd\w+#1 claimed -> IN_FLIGHT", done.stdout, re.MULTILINE
    )
    assert re.search(r"^seed 1, trace [0-9a-f]{16}$", done.stdout, re.MULTILINE)
