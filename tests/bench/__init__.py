"""Benchmarks, and the row that each of them reports."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One measurement. `ours` and `other` are in `unit`; without `other` there is no ratio."""

    name: str
    ours: float
    unit: str
    other: float | None = None
    other_name: str = ""

    def cells(self) -> tuple[str, str, str, str]:
        ours = f"{self.ours:,.2f} {self.unit}"
        if self.other is None:
            return self.name, ours, "", ""
        ratio = f"{self.ours / self.other:.2f}" if self.other else "-"
        return self.name, ours, f"{self.other_name}: {self.other:,.2f} {self.unit}", ratio
