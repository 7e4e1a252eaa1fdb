"""Runs everything that `make test` promises and ends with one summary in pytest's form.

`python -m tests` runs all parts, `python -m tests NAME…` some of them. A failed part does not keep
the others from running; the exit status is 1 if any failed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.support import postgres, shared

ROOT = Path(__file__).resolve().parent.parent
PYTEST = ("pytest", "-p", "no:cacheprovider")
TWO_AT_A_TIME = ("-n", "2", "--dist", "loadfile")
NO_TESTS_COLLECTED = 5


@dataclass(frozen=True)
class Part:
    """One command: a program of the same environment, and its arguments."""

    name: str
    command: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    # What must run meanwhile; it gives further variables.
    around: Callable[[], AbstractContextManager[Mapping[str, str] | None]] = nullcontext

    @property
    def is_pytest(self) -> bool:
        return self.command[0] == "pytest"


def parts(server_url: str) -> list[Part]:
    in_process = ("tests", "--ignore=tests/stack", "--ignore=tests/browser")
    production = {"ORDERDESK_HTTPS": "1", "ORDERDESK_HOSTS": "desk.example.org"}
    return [
        Part("format", ("ruff", "format", "--check", ".")),
        Part("lint", ("ruff", "check", ".")),
        Part("types", ("mypy",)),
        Part("arrows", ("lint-imports", "--no-cache", "--no-logo")),
        Part("migrations", ("python", "manage.py", "makemigrations", "--check", "--dry-run")),
        Part(
            "deployment",
            ("python", "manage.py", "check", "--deploy", "--fail-level=WARNING"),
            production,
        ),
        Part("sqlite", (*PYTEST, *in_process, *TWO_AT_A_TIME)),
        Part(
            "postgresql",
            (*PYTEST, *in_process, *TWO_AT_A_TIME, "-m", "database"),
            {"DATABASE_URL": server_url},
        ),
        # These mostly wait for one desk, each in a market of its own.
        Part(
            "scenarios",
            (*PYTEST, "tests/stack", "-m", "shared", "-n", "6", "--dist", "worksteal"),
            around=partial(shared.desks, server_url),
        ),
        Part("stack", (*PYTEST, "tests/stack", "-m", "not shared", *TWO_AT_A_TIME)),
        Part("browser", (*PYTEST, "tests/browser")),
    ]


def run(part: Part, counts: Counter[str], scratch: Path) -> bool:
    """Run one part and add its counts; says whether it passed."""
    print(f"\n==> {part.name}", flush=True)
    report = scratch / f"{part.name}.xml"
    program, *words = part.command
    if part.is_pytest:
        words.append(f"--junitxml={report}")
    started = time.monotonic()
    with part.around() as meanwhile:
        done = subprocess.run(
            [Path(sys.executable).with_name(program), *words],
            cwd=ROOT,
            env={**os.environ, **part.environment, **(meanwhile or {})},
            stdin=subprocess.DEVNULL,
        )
    print(f"<== {part.name}: {time.monotonic() - started:.1f} s", flush=True)
    if part.is_pytest:
        _count(report, counts)
    if done.returncode == NO_TESTS_COLLECTED:
        print(f"{part.name}: no tests were found", flush=True)
    return done.returncode == 0


def _count(report: Path, counts: Counter[str]) -> None:
    if not report.exists():
        counts["errors"] += 1
        return
    for suite in ET.parse(report).getroot().iter("testsuite"):
        told = {name: int(suite.get(name, 0)) for name in ("failures", "errors", "skipped")}
        counts["failed"] += told["failures"]
        counts["errors"] += told["errors"]
        counts["skipped"] += told["skipped"]
        counts["passed"] += int(suite.get("tests", 0)) - sum(told.values())


def summary(counts: Counter[str], failed: list[str], elapsed_s: float) -> str:
    """The last line, as pytest writes it, over all its runs; a failed check counts as an error."""
    total = counts + Counter(errors=len(failed))
    words = [f"{total[name]} {name}" for name in ("failed", "passed", "skipped") if total[name]]
    if total["errors"]:
        words.append(f"{total['errors']} error{'s' if total['errors'] > 1 else ''}")
    return f" {', '.join(words) or 'no tests ran'} in {elapsed_s:.2f}s ".center(80, "=")


def main(wanted: list[str]) -> int:
    started = time.monotonic()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # by way of every clean-up
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as scratch, postgres.server() as server_url:
        os.environ[postgres.URL_VARIABLE] = server_url
        os.environ["ORDERDESK_DATA"] = f"{scratch}/data"  # not the developer's own desk
        chosen = _chosen(parts(server_url), wanted)
        failed = [part for part in chosen if not run(part, counts, Path(scratch))]
    print(
        f"\nFailed: {', '.join(part.name for part in failed)}" if failed else "\nAll parts passed"
    )
    checks = [part.name for part in failed if not part.is_pytest]
    print(summary(counts, checks, time.monotonic() - started), flush=True)
    return 1 if failed else 0


def _chosen(everything: list[Part], wanted: list[str]) -> list[Part]:
    unknown = set(wanted) - {part.name for part in everything}
    if unknown:
        names = ", ".join(part.name for part in everything)
        raise SystemExit(f"no such part: {', '.join(sorted(unknown))}; there are {names}")
    return [part for part in everything if not wanted or part.name in wanted]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
