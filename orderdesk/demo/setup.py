"""Prepares a demo: its own journal, account file, simulated venue, user and sign-in link."""

from __future__ import annotations

import fcntl
import os
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from django.conf import settings

from orderdesk import environment
from orderdesk.demo.venue import SYMBOLS, URL_VARIABLE
from orderdesk.launch import DEMO_MARK, LaunchError
from orderdesk.processes import Spec

USER = "demo"
LOOPBACK = ("127.0.0.1", "::1", "localhost")
JOURNAL_FILES = ("db.sqlite3", "db.sqlite3-wal", "db.sqlite3-shm")
KEEP_JOURNALS = 5
# The simulator takes any key; its signature is checked with this.
SECRETS = {"ORDERDESK_DEMO_KEY": "demo", "ORDERDESK_DEMO_SECRET": "simulator-secret"}

ACCOUNT_FILE = """\
# Written by `manage.py desk --demo` at every start.
[accounts.demo]
exchange = "binance"
api_key = "env:ORDERDESK_DEMO_KEY"
secret = "env:ORDERDESK_DEMO_SECRET"
symbols = {symbols}
base_url = "{url}"
"""


@dataclass(frozen=True)
class Demo:
    """A prepared demo. It holds the lock on its folder for as long as it lives."""

    specs: Sequence[Spec]
    lock: IO[str]

    @classmethod
    def prepare(cls) -> Demo:
        """Everything that must be there before the database is opened. Raises LaunchError."""
        _refuse_real_desks()
        folder = settings.ORDERDESK_DATA / "demo"
        folder.mkdir(exist_ok=True)
        lock = _lock(folder)
        _fresh_journal(folder)
        port = _free_port()
        url = f"http://127.0.0.1:{port}"
        os.environ.update({**SECRETS, URL_VARIABLE: url})
        symbols = "[" + ", ".join(f'"{symbol}"' for symbol in SYMBOLS) + "]"
        settings.ORDERDESK_CONFIG.write_text(ACCOUNT_FILE.format(symbols=symbols, url=url))
        guarded = [sys.executable, "-m", "orderdesk.guard"]
        return cls(
            specs=[
                Spec("simulator", [*guarded, "simulate", "--port", str(port)], stops_last=True),
                Spec("strategy", [*guarded, "demo_strategy"], kill_after_s=2.0),
            ],
            lock=lock,
        )

    def invitation(self, address: str) -> str:
        """The lines that tell a person where to go. Needs the migrated database."""
        from django.urls import reverse
        from sesame.utils import get_query_string

        link = f"{address}{reverse('sign-in-link')}{get_query_string(_user())}"
        return (
            f"\norderdesk demo at {address}\n"
            f"Sign in, once, within {settings.SESAME_MAX_AGE.total_seconds() / 60:.0f} minutes:\n"
            f"  {link}\n"
            "The venue is simulated: no real order is placed. Stop with Ctrl-C.\n"
        )


def _refuse_real_desks() -> None:
    if settings.ORDERDESK_BIND not in LOOPBACK:
        raise LaunchError(
            f"the demo runs on loopback only; unset ORDERDESK_BIND={settings.ORDERDESK_BIND}"
        )
    if environment.is_set("DATABASE_URL"):
        raise LaunchError("the demo has a journal of its own in ORDERDESK_DATA; unset DATABASE_URL")


def _lock(folder: Path) -> IO[str]:
    lock = (folder / "lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise LaunchError(
            f"another demo uses {folder.parent}; stop it, or set ORDERDESK_DATA to another folder"
        ) from None
    return lock


def _fresh_journal(folder: Path) -> None:
    """Begin with an empty journal: the simulator forgets its orders when it ends.

    The demo's journal of before is moved aside, and only that.
    """
    mark = settings.ORDERDESK_DATA / DEMO_MARK
    journal = settings.ORDERDESK_DATA / JOURNAL_FILES[0]
    if journal.exists():
        if not mark.exists():
            raise LaunchError(
                f"{journal} is the journal of a real desk; set ORDERDESK_DATA to another folder "
                "for the demo"
            )
        aside = folder / f"journal-{datetime.now(UTC):%Y%m%dT%H%M%S}"
        aside.mkdir()
        for name in JOURNAL_FILES:
            if (path := settings.ORDERDESK_DATA / name).exists():
                path.rename(aside / name)
        _forget_old(folder)
    mark.touch()


def _forget_old(folder: Path) -> None:
    for old in sorted(folder.glob("journal-*"))[:-KEEP_JOURNALS]:
        for path in old.iterdir():
            path.unlink()
        old.rmdir()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _user() -> object:
    from django.contrib.auth.models import Group, User

    from orders.roles import Role

    user, _ = User.objects.get_or_create(username=USER, defaults={"is_staff": True})
    user.set_unusable_password()
    user.save()
    user.groups.set([Group.objects.get(name=Role.ADMINISTRATOR.value)])
    return user
