"""Runs seeds and tells what they showed."""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.simulation import database
from tests.simulation.mutations import MUTATIONS, taken_out
from tests.simulation.plan import plan_of
from tests.simulation.regressions import CAUGHT, REGRESSIONS
from tests.simulation.world import Outcome, simulate

CHUNK = 25  # seeds that one worker takes at a time


class Runs:
    """Seeds, one after the other, each on a fresh journal."""

    def __init__(self) -> None:
        self._image = database.create()

    def one(self, seed: int, mutation: str | None = None) -> Outcome:
        database.restore(self._image)
        with taken_out(mutation) as change:
            return simulate(seed, change)


@dataclass(frozen=True)
class Result:
    """What is worth telling of one seed."""

    seed: int
    violations: list[str]
    digest: str
    counts: dict[str, int]
    cpu_s: float


_runs: Runs | None = None
_mutation: str | None = None


def _prepare(mutation: str | None) -> None:
    global _runs, _mutation
    _runs, _mutation = Runs(), mutation
    gc.freeze()
    gc.disable()  # a run makes much garbage and few cycles


def _one(seed: int) -> Result:
    assert _runs is not None
    began = time.process_time()
    outcome = _runs.one(seed, _mutation)
    gc.collect(1)
    spent = time.process_time() - began
    return Result(seed, outcome.violations, outcome.digest, outcome.counts, spent)


def results(seeds: Sequence[int], mutation: str | None, jobs: int) -> Iterator[Result]:
    """In the order of the seeds."""
    if jobs == 1:
        _prepare(mutation)
        yield from map(_one, seeds)
        return
    forking = multiprocessing.get_context("fork")  # no thread and no connection is there yet
    with forking.Pool(jobs, _prepare, (mutation,)) as pool:
        yield from pool.imap(_one, seeds, chunksize=min(CHUNK, len(seeds) // jobs + 1))


def _arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation",
        description="Search for a seed that breaks the promise: one decision, one order.",
    )
    parser.add_argument("--seeds", type=int, default=300, help="how many")
    parser.add_argument("--first", type=int, default=1, help="the first of them")
    parser.add_argument("--seed", type=int, help="this one alone")
    parser.add_argument("--story", action="store_true", help="print what happened, line by line")
    parser.add_argument("--kept", action="store_true", help="the kept seeds, as lines of JSON")
    parser.add_argument("--mutation", choices=sorted(MUTATIONS), help="take a rule out")
    parser.add_argument("--stop", action="store_true", help="end at the first violation")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--seconds", type=float, help="begin no seed after so long")
    parser.add_argument("--json", action="store_true", help="one line of JSON for each seed")
    return parser.parse_args(words)


def main(words: list[str]) -> int:
    """1 where a seed broke the promise."""
    asked = _arguments(words)
    if asked.story:
        return _story(asked)
    if asked.kept:
        return _kept()
    seeds = _seeds(asked)
    began, cpu_s, failed, done, orders, lines = time.monotonic(), 0.0, 0, 0, 0, 0
    for result in results(seeds, asked.mutation, min(asked.jobs, len(seeds))):
        done += 1
        cpu_s += result.cpu_s
        orders += result.counts["orders"]
        lines += result.counts["transitions"]
        if asked.json:
            print(json.dumps({"seed": result.seed, "digest": result.digest}), flush=True)
        if result.violations:
            failed += 1
            _tell(result, asked.mutation)
            if asked.stop:
                break
        if asked.seconds is not None and time.monotonic() - began > asked.seconds:
            break
    print(
        f"{done} seeds, {failed} failed; {orders} orders, {lines} lines of journal; "
        f"{done / cpu_s:.1f} seeds a second and core, {time.monotonic() - began:.0f} s in all"
    )
    return 1 if failed else 0


def _kept() -> int:
    """Each kept seed: with its rule taken out, and with it, or with the other rule of its pair."""
    runs = Runs()
    for seed in REGRESSIONS:
        told = {"seed": seed, "violations": runs.one(seed).violations}
        print(json.dumps(told), flush=True)
    for rule, seed in CAUGHT.items():
        mutation = MUTATIONS[rule]
        told = {
            "rule": rule,
            "seed": seed,
            "matters": mutation.matters(plan_of(seed)[0]),
            "missed": runs.one(seed, rule).violations,
            "violations": runs.one(seed, mutation.covered_by or None).violations,
        }
        print(json.dumps(told), flush=True)
    return 0


def _seeds(asked: argparse.Namespace) -> list[int]:
    """Those asked for; with a rule taken out, only those whose plan can miss it."""
    if asked.seed is not None:
        return [asked.seed]
    seeds = range(asked.first, asked.first + asked.seeds)
    if asked.mutation is None:
        return list(seeds)
    matters = MUTATIONS[asked.mutation].matters
    return [seed for seed in seeds if matters(plan_of(seed)[0])]


def _tell(result: Result, mutation: str | None) -> None:
    print(f"seed {result.seed}:", flush=True)
    for text in result.violations:
        print(f"    {text}")
    how = f" --mutation {mutation}" if mutation else ""
    print(f"    replay: python -m tests.simulation --seed {result.seed}{how} --story", flush=True)


def _story(asked: argparse.Namespace) -> int:
    seed = asked.seed if asked.seed is not None else asked.first
    outcome = Runs().one(seed, asked.mutation)
    for at, who, what in outcome.lines:
        print(f"{at:9.4f}  {who:14} {what}")
    print(f"seed {outcome.seed}, trace {outcome.digest}")
    for text in outcome.violations:
        print(f"    {text}")
    return 1 if outcome.violations else 0
