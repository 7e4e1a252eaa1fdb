"""What the commands say before there is a journal, and which journal they use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def manage(tmp_path: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("ORDERDESK_", "DATABASE_"))}
    return subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=ROOT,
        env={
            **kept,
            "ORDERDESK_DATA": str(tmp_path),
            "DJANGO_SETTINGS_MODULE": "orderdesk.settings",
            **environment,
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    "words",
    [
        ("api_token", "list"),
        ("api_token", "create", "bot", "--role", "viewer"),
        ("restored", "--reason", "a test"),
        ("createsuperuser",),
    ],
    ids=lambda words: words[0],
)
def test_before_the_first_start_the_remedy_is_named_and_no_empty_journal_made(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    journal = tmp_path / "db.sqlite3"
    done = manage(tmp_path, *words)
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert f"{journal} has no tables yet: start the desk once, or run" in line
    assert not journal.exists()
    journal.touch()  # an empty one is no better
    assert manage(tmp_path, *words).stderr == done.stderr


def test_api_token_names_the_journal_beside_what_it_prints(tmp_path: Path) -> None:
    assert manage(tmp_path, "migrate").returncode == 0
    listed = manage(tmp_path, "api_token", "list")
    assert f"no tokens in the journal {tmp_path / 'db.sqlite3'}" in listed.stderr
    made = manage(tmp_path, "api_token", "create", "bot", "--role", "viewer")
    assert made.stdout.startswith("odt_")
    assert len(made.stdout.split()) == 1
    assert f"kept in the journal {tmp_path / 'db.sqlite3'}" in made.stderr
    assert "no tokens" not in manage(tmp_path, "api_token", "list").stderr


def test_a_server_is_named_without_its_password(tmp_path: Path) -> None:
    url = "postgres://desk:pass-word@127.0.0.1:1/orders"
    done = manage(tmp_path, "api_token", "list", DATABASE_URL=url)
    assert done.returncode == 1
    assert "the database 127.0.0.1:1/orders does not open" in done.stderr
    assert "Traceback" not in done.stderr
    assert "pass-word" not in done.stderr
