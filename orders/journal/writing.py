"""One write transaction: fair on SQLite, announced on PostgreSQL, durable on both."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from django.db import connection, transaction

CHANNEL = "orderdesk"  # the NOTIFY channel that lanes and browsers listen on

_locks = threading.local()


@dataclass(slots=True)
class Transaction:
    """`changed` may be set to False where nothing was written that anybody waits for."""

    changed: bool = True


@contextmanager
def writing() -> Iterator[Transaction]:
    """A transaction that is on disk when the block ends. Must be the outermost one.

    SQLite's own lock is unfair: under load one writer can starve another for longer than a lease
    lasts. A file lock around the transaction puts the writers in a queue.
    """
    with _queue(), transaction.atomic(durable=True):
        current = Transaction()
        yield current
        if current.changed:
            _announce()


def database_now() -> datetime:
    """The database's clock, which rules leases."""
    sql = {
        "postgresql": "SELECT clock_timestamp()",
        "sqlite": "SELECT strftime('%Y-%m-%d %H:%M:%f', 'now')",
    }[connection.vendor]
    with connection.cursor() as cursor:
        cursor.execute(sql)
        value = cursor.fetchone()[0]
    if isinstance(value, str):
        return datetime.fromisoformat(value).replace(tzinfo=UTC)
    return value.astimezone(UTC)  # type: ignore[no-any-return]


def _announce() -> None:
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_notify(%s, '')", [CHANNEL])


@contextmanager
def _queue() -> Iterator[None]:
    path = _lock_path()
    if path is None:
        yield
        return
    handle = _handle(path)
    fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(handle, fcntl.LOCK_UN)


def _lock_path() -> str | None:
    name = str(connection.settings_dict["NAME"])
    in_memory = not name or ":memory:" in name or "mode=memory" in name
    return None if connection.vendor != "sqlite" or in_memory else f"{name}.lock"


def _handle(path: str) -> int:
    """This thread's descriptor: a lock belongs to an open file, and a fork must not share it."""
    owner = (os.getpid(), path)
    if getattr(_locks, "owner", None) != owner:
        _locks.handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        _locks.owner = owner
    return int(_locks.handle)
