"""Django's own work done once instead of thousands of times. It changes no statement.

Half of a run is spent on writing the same SQL again: the columns of a plain SELECT, and which
converter belongs to which column, depend on the model alone.
"""

from __future__ import annotations

from typing import Any

from django.db.models.sql.compiler import SQLCompiler

_get_select = SQLCompiler.get_select
_get_converters = SQLCompiler.get_converters
_selects: dict[tuple[Any, str], Any] = {}
_converters: dict[int, tuple[Any, Any]] = {}  # by the first column, which is kept alive here


def _is_plain(query: Any) -> bool:
    return (
        query.default_cols
        and query.selected is None
        and not query.select_related
        and not query.annotations
        and not query.extra
        and query.deferred_loading == (frozenset(), True)
    )


def _select(self: Any, with_col_aliases: bool = False) -> Any:
    query = self.query
    if with_col_aliases or not _is_plain(query):
        return _get_select(self, with_col_aliases)
    key = (query.model, query.get_initial_alias())
    found = _selects.get(key)
    if found is None:
        found = _selects[key] = _get_select(self)
        columns = [column for column, _, _ in found[0]]
        _converters[id(columns[0])] = (columns, _get_converters(self, columns))
    return found


def _convert(self: Any, expressions: Any) -> Any:
    plain = isinstance(expressions, list) and expressions
    known = _converters.get(id(expressions[0])) if plain else None
    if known is not None and known[0] == expressions:
        return known[1]
    return _get_converters(self, expressions)


def install() -> None:
    SQLCompiler.get_select = _select  # type: ignore[method-assign]
    SQLCompiler.get_converters = _convert  # type: ignore[method-assign]
