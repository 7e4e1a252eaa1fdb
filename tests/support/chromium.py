"""Finds a Chromium for the browser tests: the system's own, or the one that Playwright brings."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

CHROMIUM_VARIABLE = "ORDERDESK_TEST_CHROMIUM"
ROOT = Path(__file__).resolve().parents[2]
# As root there is no sandbox; the rest keeps it from calling home.
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def find() -> str | None:
    """The path of an installed Chromium; None if there is none."""
    given = os.environ.get(CHROMIUM_VARIABLE)
    if given:
        return given
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    return _playwrights()


def _playwrights() -> str | None:
    for path in sorted((ROOT / ".playwright").glob("chromium-*/*/chrome")):
        return str(path)
    return None


def install() -> str:
    """Get one: from Debian's packages where possible, else Playwright's. Raises RuntimeError."""
    tried = []
    for command, environment in _ways():
        done = subprocess.run(
            command, env={**os.environ, **environment}, capture_output=True, text=True, check=False
        )
        if done.returncode == 0 and (found := find()):
            return found
        tried.append(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()[-500:]}")
    raise RuntimeError(
        "the browser tests need Chromium; install it (Debian: apt-get install chromium), or set "
        f"{CHROMIUM_VARIABLE} to its path. Tried:\n" + "\n".join(tried)
    )


def _ways() -> list[tuple[list[str], dict[str, str]]]:
    ways: list[tuple[list[str], dict[str, str]]] = []
    if os.geteuid() == 0 and shutil.which("apt-get"):
        ways.append(
            (
                [
                    "sh",
                    "-c",
                    "apt-get update -q && apt-get install -qy --no-install-recommends chromium",
                ],
                {"DEBIAN_FRONTEND": "noninteractive"},
            )
        )
    ways.append(
        (
            [sys.executable, "-m", "playwright", "install", "chromium"],
            {"PLAYWRIGHT_BROWSERS_PATH": str(ROOT / ".playwright")},
        )
    )
    return ways


if __name__ == "__main__":
    print(find() or install())
