"""The settings are safe as they stand, and bad values are named with the remedy."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(tmp_path: Path, code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("ORDERDESK_", "DATABASE_"))}
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={
            **kept,
            "ORDERDESK_DATA": str(tmp_path),
            "DJANGO_SETTINGS_MODULE": "orderdesk.settings",
            **environment,
        },
        capture_output=True,
        text=True,
    )


def manage(tmp_path: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    code = f"import sys; sys.argv = {['manage.py', *words]!r}; from manage import main; main()"
    return run(tmp_path, code, **environment)


def settings(tmp_path: Path, *names: str, **environment: str) -> dict[str, Any]:
    code = (
        "import json; from django.conf import settings;"
        f"print(json.dumps({{name: getattr(settings, name) for name in {names!r}}}, default=str))"
    )
    done = run(tmp_path, code, **environment)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_without_any_variable_it_is_closed_to_all_but_loopback(tmp_path: Path) -> None:
    found = settings(tmp_path, "DEBUG", "ALLOWED_HOSTS", "ORDERDESK_BIND", "ORDERDESK_DEMO")
    assert found == {
        "DEBUG": False,
        "ALLOWED_HOSTS": ["localhost", "127.0.0.1", "[::1]"],
        "ORDERDESK_BIND": "127.0.0.1",
        "ORDERDESK_DEMO": False,
    }


def test_https_turns_on_everything_that_belongs_to_it(tmp_path: Path) -> None:
    names = ("SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE", "SECURE_SSL_REDIRECT")
    found = settings(
        tmp_path, *names, ORDERDESK_HTTPS="1", ORDERDESK_HOSTS="desk.example.org, 127.0.0.1"
    )
    assert found == dict.fromkeys(names, True)


def test_a_far_host_over_plain_http_must_be_asked_for(tmp_path: Path) -> None:
    done = run(tmp_path, "import orderdesk.settings", ORDERDESK_HOSTS="desk.example.org")
    assert done.returncode != 0
    assert "ORDERDESK_HOSTS names desk.example.org: set ORDERDESK_HTTPS=1" in done.stderr
    accepted = settings(
        tmp_path, "ALLOWED_HOSTS", ORDERDESK_HOSTS="desk.example.org", ORDERDESK_HTTPS="0"
    )
    assert accepted["ALLOWED_HOSTS"] == ["desk.example.org"]


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("ORDERDESK_PORT", "80a", "ORDERDESK_PORT must be a whole number from 0 to 65535"),
        ("ORDERDESK_PORT", "70000", "ORDERDESK_PORT must be a whole number from 0 to 65535"),
        ("ORDERDESK_LANES", "0", "ORDERDESK_LANES must be a whole number from 1 to 64"),
        ("ORDERDESK_DEBUG", "maybe", "ORDERDESK_DEBUG must be 1 or 0, not 'maybe'"),
        ("ORDERDESK_DOUBT_S", "x", "ORDERDESK_DOUBT_S must be a whole number from 1 to 3600"),
        ("ORDERDESK_DATA", "/proc/nothing", "ORDERDESK_DATA: cannot make the folder"),
        ("ORDERDESK_DATA", __file__, f"ORDERDESK_DATA: {__file__} is not a folder"),
        (
            "ORDERDESK_LOG_LEVEL",
            "loud",
            "ORDERDESK_LOG_LEVEL must be one of DEBUG, INFO, WARNING, ERROR, CRITICAL, not 'LOUD'",
        ),
        ("DATABASE_URL", "nowhere://x", "DATABASE_URL is no address of a database"),
    ],
)
@pytest.mark.parametrize("command", ["desk", "migrate", "createsuperuser"])
def test_a_bad_variable_is_named_in_one_line(
    tmp_path: Path, command: str, name: str, value: str, words: str
) -> None:
    done = manage(tmp_path, command, **{name: value})
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert words in line
    assert not done.stdout


@pytest.mark.skipif(
    find_spec("channels_redis") is not None, reason="what is missing here is installed"
)
def test_redis_without_its_package_is_refused_with_the_remedy(tmp_path: Path) -> None:
    done = manage(tmp_path, "desk", ORDERDESK_REDIS_URL="redis://127.0.0.1")
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert "ORDERDESK_REDIS_URL needs the package channels_redis" in line
    assert "pip install channels_redis" in line


def test_the_secret_key_is_made_once_and_readable_by_its_owner_alone(tmp_path: Path) -> None:
    first, second = (settings(tmp_path, "SECRET_KEY") for _ in range(2))
    assert first == second
    assert len(first["SECRET_KEY"]) >= 50
    assert stat.S_IMODE((tmp_path / "secret.key").stat().st_mode) == 0o600
    given = settings(tmp_path, "SECRET_KEY", ORDERDESK_SECRET_KEY="k" * 60)
    assert given["SECRET_KEY"] == "k" * 60


def test_processes_that_start_at_once_share_one_secret_key(tmp_path: Path) -> None:
    code = "from django.conf import settings; print(settings.SECRET_KEY)"
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={
                **os.environ,
                "ORDERDESK_DATA": str(tmp_path),
                "DJANGO_SETTINGS_MODULE": "orderdesk.settings",
            },
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(6)
    ]
    assert len({process.communicate()[0] for process in started}) == 1
    assert not list(tmp_path.glob(".secret-*"))


def test_sqlite_is_durable_and_takes_the_write_lock_at_once(tmp_path: Path) -> None:
    code = (
        "import django, json; django.setup(); from django.db import connection as c;"
        "cursor = c.cursor();"
        "ask = lambda name: cursor.execute('PRAGMA ' + name).fetchone()[0];"
        "names = ('journal_mode', 'synchronous', 'foreign_keys', 'busy_timeout');"
        "print(json.dumps([ask(name) for name in names] + [c.transaction_mode]))"
    )
    done = run(tmp_path, code)
    full, on = 2, 1
    assert json.loads(done.stdout) == ["wal", full, on, 20_000, "IMMEDIATE"]


def test_postgresql_keeps_connections_and_web_processes_share_a_pool(tmp_path: Path) -> None:
    url = "postgres://desk:pw@db.example.org/desk"
    kept = settings(tmp_path, "DATABASES", DATABASE_URL=url)["DATABASES"]["default"]
    assert (kept["CONN_MAX_AGE"], kept["CONN_HEALTH_CHECKS"]) == (600, True)
    pooled = settings(tmp_path, "DATABASES", DATABASE_URL=url, ORDERDESK_DB_POOL="1")
    assert pooled["DATABASES"]["default"]["OPTIONS"]["pool"]["max_size"] == 20
    assert not kept.get("ATOMIC_REQUESTS")
