"""The triggers that make the journal append-only, in the dialects of both databases.

They are the database's own last word: no code path, shell or admin page can rewrite history. The
test suite, which empties tables between tests, takes them off and puts them back around that.
"""

from __future__ import annotations

from typing import Any

TABLE = "orders_transition"

_SQLITE_INSTALL = [
    f"""CREATE TRIGGER IF NOT EXISTS {TABLE}_no_{verb.lower()} BEFORE {verb} ON {TABLE}
        BEGIN SELECT RAISE(ABORT, '{TABLE} is append-only: {verb} refused'); END"""
    for verb in ("UPDATE", "DELETE")
]
_SQLITE_UNINSTALL = [f"DROP TRIGGER IF EXISTS {TABLE}_no_{verb}" for verb in ("update", "delete")]

_POSTGRESQL_INSTALL = [
    f"""CREATE OR REPLACE FUNCTION {TABLE}_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION '{TABLE} is append-only: % refused', TG_OP; END $$""",
    f"""CREATE OR REPLACE TRIGGER {TABLE}_no_rewrite BEFORE UPDATE OR DELETE ON {TABLE}
        FOR EACH ROW EXECUTE FUNCTION {TABLE}_refuse()""",
    f"""CREATE OR REPLACE TRIGGER {TABLE}_no_truncate BEFORE TRUNCATE ON {TABLE}
        FOR EACH STATEMENT EXECUTE FUNCTION {TABLE}_refuse()""",
]
_POSTGRESQL_UNINSTALL = [
    f"DROP TRIGGER IF EXISTS {TABLE}_no_rewrite ON {TABLE}",
    f"DROP TRIGGER IF EXISTS {TABLE}_no_truncate ON {TABLE}",
]


def statements(vendor: str, *, install: bool) -> list[str]:
    """The SQL for one database. Raises ValueError for a database that has no triggers here."""
    match vendor, install:
        case "sqlite", True:
            return _SQLITE_INSTALL
        case "sqlite", False:
            return _SQLITE_UNINSTALL
        case "postgresql", True:
            return _POSTGRESQL_INSTALL
        case "postgresql", False:
            return _POSTGRESQL_UNINSTALL
    raise ValueError(f"the journal needs SQLite or PostgreSQL, not {vendor}")


def install(connection: Any) -> None:
    """Refuse UPDATE, DELETE and TRUNCATE of transitions from now on. Idempotent."""
    _run(connection, install=True)


def uninstall(connection: Any) -> None:
    """Take the triggers off. Only for emptying a test database."""
    _run(connection, install=False)


def _run(connection: Any, *, install: bool) -> None:
    with connection.cursor() as cursor:
        for statement in statements(connection.vendor, install=install):
            cursor.execute(statement)
