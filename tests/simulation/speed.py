"""What Django does around each statement, done once or left out. It changes no statement.

A run asks thousands of small things of a database in memory. Most of their cost is preparation:
the marks of the parameters, hooks that nobody uses here, and whether an event loop runs.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, Self

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.sqlite3.base import SQLiteCursorWrapper

from orders.lane import drive, runner, sweep, tracker

# What Django refuses to do while an event loop runs: here each process's database is a thread's.
_GUARDED = (
    "clean_savepoints",
    "commit",
    "ensure_connection",
    "rollback",
    "savepoint",
    "savepoint_commit",
    "savepoint_rollback",
)


@lru_cache(maxsize=5000)
def _with_marks(query: str) -> str:
    convert: Any = SQLiteCursorWrapper.convert_query
    return str(convert(None, query))


class Cursor(sqlite3.Cursor):
    """What `connection.cursor()` gives, without its layers: the same SQL, the same errors."""

    database: Any

    def execute(self, query: str, params: Sequence[Any] | None = None) -> Any:  # type: ignore[override]
        database = self.database
        if database.needs_rollback:
            database.validate_no_broken_transaction()
        try:
            if params is None:
                return super().execute(query)
            return super().execute(_with_marks(query), params)
        except sqlite3.Error:
            with database.wrap_database_errors:
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _cursor(self: Any) -> Cursor:
    return self.connection.cursor(Cursor)  # type: ignore[no-any-return]


def poll_rarely(*, peace: bool) -> None:
    """Rarer than in life: nine wake-ups in ten arrive, in peace all of them, and do the work.

    Only the sweep comes sooner in peace, so that a run need not wait for it.
    """
    drive.TICK_S, tracker.TICK_S, sweep.TICK_S = (1.0, 0.6, 1.0) if peace else (0.4, 0.3, 1.0)
    sweep.BUSY_EVERY_S, sweep.QUIET_EVERY_S = (1.5, 1.5) if peace else (5.0, 60.0)
    runner.STANDBY_S, runner.RENEW_S = (1.0, 1.4) if peace else (0.5, 0.8)


def install() -> None:
    """For this process's one connection, which is open."""
    database = connections[DEFAULT_DB_ALIAS]
    database.ensure_connection()
    Cursor.database = database
    connections._connections = SimpleNamespace(default=database)  # type: ignore[attr-defined]
    kind: Any = type(database)
    kind.cursor, kind.close = _cursor, kind.close.__wrapped__
    for name in _GUARDED:
        guarded: Any = getattr(BaseDatabaseWrapper, name)
        setattr(BaseDatabaseWrapper, name, guarded.__wrapped__)
