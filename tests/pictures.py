"""The README's pictures, taken from the running demo: `python -m tests.pictures`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tests.support.chromium import ARGUMENTS, find, install

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "pictures"
SIZE = {"width": 1280, "height": 800}
PATIENCE_MS = 90_000


@contextmanager
def demo() -> Iterator[str]:
    """A demo of its own; yields its sign-in link."""
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "desk", "--demo"],
            cwd=ROOT,
            env={**os.environ, "ORDERDESK_DATA": folder, "ORDERDESK_PORT": "0"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert process.stdout is not None
        try:
            yield next(line.strip() for line in process.stdout if "sesame=" in line)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(15)


def take(page: Page, link: str) -> None:
    """The board with some orders filled and one market in doubt."""
    page.goto(link)
    page.get_by_text("FILLED").nth(5).wait_for(timeout=PATIENCE_MS)
    page.get_by_text("BLOCKED").first.wait_for(timeout=PATIENCE_MS)
    page.get_by_text("UNKNOWN").or_(page.get_by_text("RECONCILING")).first.wait_for()
    page.screenshot(path=FOLDER / "board.png")


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with demo() as link, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find() or install(), args=ARGUMENTS)
        page = browser.new_page(viewport=SIZE, color_scheme="light")  # type: ignore[arg-type]
        take(page, link)
        browser.close()


if __name__ == "__main__":
    main()
