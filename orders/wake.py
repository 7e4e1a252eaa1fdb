"""Notices commits to the journal from any process, within milliseconds."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import structlog
from django.db import connection, connections
from django.db.utils import Error

from orders.journal.writing import CHANNEL

log = structlog.get_logger(__name__)

POLL_S = 0.002  # SQLite: a poll costs microseconds
RETRY_S = 0.5


class Watcher(threading.Thread):
    """Calls `on_change` from its own thread after each commit by another connection.

    One call may stand for many commits. After a lost connection it calls once, since something may
    have been missed. PostgreSQL tells by LISTEN; SQLite counts commits in `PRAGMA data_version`.
    """

    def __init__(self, on_change: Callable[[], None]) -> None:
        super().__init__(name="journal-watcher", daemon=True)
        self._on_change = on_change
        self._stopped = threading.Event()

    def stop(self) -> None:
        self._stopped.set()

    def run(self) -> None:
        watch = self._listen if connection.vendor == "postgresql" else self._poll
        while not self._stopped.is_set():
            try:
                connection.ensure_connection()
                raw = connection.connection
                self._on_change()
                watch(raw)
            except Exception as error:  # the driver's own errors pass through here, unwrapped
                if not isinstance(error, Error | OSError) and not _is_driver_error(error):
                    raise
                log.warning("journal_watch_lost", error=str(error))
                connection.close()
                self._stopped.wait(RETRY_S)
        connections.close_all()

    def _listen(self, raw: Any) -> None:
        raw.execute(f"LISTEN {CHANNEL}")
        self._on_change()
        while not self._stopped.is_set():
            for _ in raw.notifies(timeout=0.5, stop_after=1):
                self._on_change()

    def _poll(self, raw: Any) -> None:
        seen = None
        while not self._stopped.wait(POLL_S):
            (version,) = raw.execute("PRAGMA data_version").fetchone()
            if version != seen:
                seen = version
                self._on_change()


def _is_driver_error(error: Exception) -> bool:
    return type(error).__module__.partition(".")[0] in ("sqlite3", "psycopg")
