"""What commands say about the database that they use."""

from __future__ import annotations

from pathlib import Path

from django.core.management.base import CommandError
from django.db import DatabaseError, connection

TABLE = "orders_apitoken"  # any would do: the first migration makes them all


def where() -> str:
    """The path of the embedded database, or the server's host and the database's name."""
    facts = connection.settings_dict
    if connection.vendor == "sqlite":
        return str(facts["NAME"])
    port = f":{facts['PORT']}" if facts.get("PORT") else ""
    return f"{facts.get('HOST') or 'localhost'}{port}/{facts['NAME']}"


def require_tables() -> None:
    """Raises CommandError, with the remedy, if there are no tables yet or no database at all."""
    empty = CommandError(
        f"{where()} has no tables yet: start the desk once, or run `python manage.py migrate`"
    )
    if _is_missing_file():
        raise empty  # without making an empty file by asking
    try:
        tables = connection.introspection.table_names()
    except DatabaseError as error:
        raise CommandError(f"the database {where()} does not open: {error}") from None
    if TABLE not in tables:
        raise empty


def _is_missing_file() -> bool:
    name = str(connection.settings_dict["NAME"])
    in_memory = ":memory:" in name or "mode=memory" in name
    return connection.vendor == "sqlite" and not in_memory and not Path(name).exists()
