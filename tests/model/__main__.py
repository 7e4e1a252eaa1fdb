"""`python -m tests.model`: search further than the test suite does, and print every story."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import replace

from tests.model.catalogue import HOLDS, HOLES, REMOVED
from tests.model.explore import Result, explore
from tests.model.settings import Setting


def main() -> int:
    """Returns 1 where the rules do not hold, or a rule taken out makes no difference."""
    wanted, failures = _arguments(), 0
    for name, setting, seek in _searches(wanted):
        bounds = {
            key: value
            for key, value in (
                ("ticks", wanted.bound),
                ("faults", wanted.faults),
                ("returns", wanted.returns),
            )
            if value is not None
        }
        began = time.monotonic()
        result = explore(replace(setting, **bounds), seek=seek)
        _tell(name, result, time.monotonic() - began)
        failures += bool(result.wrong) is not bool(seek)
    return 1 if failures else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.model", description=__doc__)
    parser.add_argument("--bound", type=int, help="the last tick (default: each setting's own)")
    parser.add_argument("--faults", type=int, help="crashes and take-overs")
    parser.add_argument("--returns", type=int, help="returns to INTENT before the market halts")
    parser.add_argument("--only", default="", help="searches whose name contains this")
    parser.add_argument(
        "--what", choices=["holds", "removed", "holes", "all"], default="all", help="which lists"
    )
    return parser.parse_args()


def _searches(wanted: argparse.Namespace) -> Iterator[tuple[str, Setting, str]]:
    """Name, setting, and the violation that must be found ("" for none)."""
    lists = {
        "holds": [(name, setting, "") for name, setting in HOLDS.items()],
        "removed": [(f"without {item.rule}", item.broken, item.wrong) for item in REMOVED],
        "holes": [
            search
            for hole in HOLES
            for search in (
                (f"hole: {hole.rule}", hole.setting, hole.wrong),
                (f"mended: {hole.rule}", hole.mended, ""),
            )
        ],
    }
    for kind, searches in lists.items():
        if wanted.what in (kind, "all"):
            yield from (search for search in searches if wanted.only in search[0])


def _tell(name: str, result: Result, seconds: float) -> None:
    futures = ", ".join(f"{count} {ending}" for ending, count in sorted(result.endings.items()))
    print(f"{name}: {result.states} states, {result.transitions} steps in {seconds:.1f} s")
    print(f"    without further faults: {futures}")
    for line in result.story:
        print(f"    {line}")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
