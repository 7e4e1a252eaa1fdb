"""Prints the benchmark table: `python -m tests.bench [NAME…]`.

A benchmark is a module tests/bench/bench_*.py with a function rows() -> list[Row].
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

from tests.bench import Row

HEADINGS = ("measured", "ours", "compared with", "ratio")


def modules(wanted: list[str]) -> list[str]:
    found = sorted(path.stem for path in Path(__file__).parent.glob("bench_*.py"))
    unknown = set(wanted) - {name.removeprefix("bench_") for name in found}
    if unknown:
        raise SystemExit(f"no such benchmark: {', '.join(sorted(unknown))}")
    return [name for name in found if not wanted or name.removeprefix("bench_") in wanted]


def table(rows: list[Row]) -> str:
    """Columns wide enough for their widest entry; numbers to the right."""
    lines = [HEADINGS, *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    text = [
        "  ".join(
            cell.ljust(width) if column in (0, 2) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
    return "\n".join([text[0], "-" * max(map(len, text)), *text[1:]])


def main(wanted: list[str]) -> None:
    rows = [row for name in modules(wanted) for row in import_module(f"tests.bench.{name}").rows()]
    print(table(rows))


if __name__ == "__main__":
    main(sys.argv[1:])
