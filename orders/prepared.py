"""Statements that run all the time, written once.

Django composes a queryset's SQL anew for every use, which takes several times longer than the
database takes to answer. Here it is composed once for each shape of arguments. The queryset stays
the definition, so both databases are asked exactly what Django would have asked them.
"""

# ruff: noqa: SLF001 (what Django offers nowhere else)
from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from operator import itemgetter
from typing import Any, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, connections, models
from django.db.models import Model, QuerySet
from django.db.models.base import ModelState
from django.db.models.query import FlatValuesListIterable, ModelIterable, get_related_populators

R = TypeVar("R")

# What every database takes as it is, in fields that do not change it.
_PLAIN = frozenset({str, int, bool, type(None)})
_PLAIN_FIELDS = frozenset(
    {
        models.BigIntegerField,
        models.BooleanField,
        models.CharField,
        models.ForeignKey,
        models.PositiveBigIntegerField,
        models.PositiveIntegerField,
        models.PositiveSmallIntegerField,
        models.TextField,
    }
)
_INT, _TEXT, _YEAR = 1_900_000_000, "prepared argument ", 9000  # values that no caller has


class Prepared(Generic[R]):
    """A query with arguments: integers, texts, aware instants, or sequences of these.

    `build` makes the queryset of its arguments; whatever else it uses must be constant. Sequences
    stand for `__in`; an empty one finds nothing.
    """

    def __init__(self, build: Callable[..., QuerySet[Any, R]]) -> None:
        self._build = build
        self._compiled: dict[object, _Compiled] = {}

    def rows(self, *args: Any) -> list[R]:
        given = [_padded(arg) for arg in args]
        if any(arg == () for arg in given):
            return []
        database = connections[DEFAULT_DB_ALIAS]
        shape = (database.vendor, *map(_kind, given))
        compiled = self._compiled.get(shape)
        if compiled is None:
            compiled = self._compiled[shape] = _compile(database, self._build, given)
        return compiled.run(database, given)

    def first(self, *args: Any) -> R | None:
        rows = self.rows(*args)
        return rows[0] if rows else None

    def any(self, *args: Any) -> bool:
        return bool(self.rows(*args))


class _Compiled:
    """SQL, where its arguments go, and how a row is read."""

    def __init__(
        self, sql: str, params: Sequence[Any], places: list[tuple[int, int, int]], read: Any
    ) -> None:
        self._sql, self._params, self._places, self._read = sql, params, places, read

    def run(self, database: Any, given: list[Any]) -> list[Any]:
        params = list(self._params)
        for place, arg, item in self._places:
            value = given[arg] if item < 0 else given[arg][item]
            params[place] = _adapted(database, value)
        with database.cursor() as cursor:
            cursor.execute(self._sql, params)
            rows = cursor.fetchall()
        return self._read(database, rows) if rows else []


def _padded(arg: Any) -> Any:
    """Sequences grow to the next power of two by repeating, so that there are few shapes."""
    if not isinstance(arg, list | tuple | set | frozenset):
        return arg
    items = tuple(arg)
    length = 1 << (len(items) - 1).bit_length() if items else 0
    return items + items[-1:] * (length - len(items))


def _kind(arg: Any) -> object:
    return (len(arg), _kind(arg[0])) if isinstance(arg, tuple) else _type(arg)


def _type(arg: Any) -> type:
    for kind in (str, int, datetime):
        if isinstance(arg, kind) and not isinstance(arg, bool):
            return kind
    raise TypeError(f"{arg!r} cannot be an argument of a prepared query")


def adapted(value: Any) -> Any:
    """An argument of a statement as this database takes it."""
    return _adapted(connections[DEFAULT_DB_ALIAS], value)


def _adapted(database: Any, value: Any) -> Any:
    if isinstance(value, datetime):
        return database.ops.adapt_datetimefield_value(value)
    return value


def _compile(
    database: Any, build: Callable[..., QuerySet[Any, Any]], given: list[Any]
) -> _Compiled:
    """Compose it for marks in the arguments' place, and find the marks again."""
    marks: dict[Any, tuple[int, int]] = {}

    def mark(arg: Any, place: tuple[int, int]) -> Any:
        made = _mark(_type(arg), len(marks))
        marks[_adapted(database, made)] = place
        return made

    marked = [
        [mark(item, (place, number)) for number, item in enumerate(arg)]
        if isinstance(arg, tuple)
        else mark(arg, (place, -1))
        for place, arg in enumerate(given)
    ]
    queryset = build(*marked)
    compiler = queryset.query.get_compiler(connection=database)
    sql, params = compiler.as_sql()
    places = [
        (place, *marks[param])
        for place, param in enumerate(params)
        if isinstance(param, str | int | datetime) and param in marks
    ]
    if {place[1:] for place in places} != set(marks.values()):
        raise ValueError(f"an argument is not in the query: {sql}")
    return _Compiled(sql, params, places, _reader(queryset, compiler))


def _mark(kind: type, number: int) -> Any:
    if kind is int:
        return _INT + number
    if kind is str:
        return f"{_TEXT}{number}"
    return datetime(_YEAR, 1, 1, microsecond=number, tzinfo=UTC)


def _reader(queryset: QuerySet[Any, Any], compiler: Any) -> Callable[[Any, list[Any]], list[Any]]:
    """Rows as the queryset would give them: models, tuples or single values."""
    columns = [column for column, _, _ in compiler.select]
    converters = [
        (place, convert, expression)
        for place, (functions, expression) in compiler.get_converters(columns).items()
        for convert in functions
    ]
    kind = queryset._iterable_class
    make: Callable[[list[Any]], Any] = tuple
    if kind is ModelIterable:
        make = _model_maker(compiler)
    elif kind is FlatValuesListIterable:
        make = itemgetter(0)

    def read(database: Any, rows: list[Any]) -> list[Any]:
        made = []
        for row in rows:
            values = list(row)
            for place, convert, expression in converters:
                if (value := values[place]) is not None:
                    values[place] = convert(value, expression, database)
            made.append(make(values))
        return made

    return read


def _model_maker(compiler: Any) -> Callable[[list[Any]], Any]:
    info, alias = compiler.klass_info, compiler.connection.alias
    model, fields = info["model"], info["select_fields"]
    first, last = fields[0], fields[-1] + 1
    names = [column[0].target.attname for column in compiler.select[first:last]]
    populators: Any = get_related_populators(info, compiler.select, alias)  # type: ignore[call-arg]

    def make(values: list[Any]) -> Any:
        """What `Model.from_db` does, without asking each field whether it was left out."""
        instance = model.__new__(model)
        instance._state = ModelState()
        instance._state.adding, instance._state.db = False, alias
        instance.__dict__.update(zip(names, values[first:last], strict=True))
        for populator in populators:
            populator.populate(values, instance)
        return instance

    return make


def insert(rows: Sequence[Model]) -> None:
    """Insert rows of one model, as `bulk_create` does. Their keys are not read back."""
    if rows:
        database = connections[DEFAULT_DB_ALIAS]
        fields, sql = _insertion(database.vendor, type(rows[0]), len(rows), returning=False)
        with database.cursor() as cursor:
            cursor.execute(sql, [_saved(database, f, row) for row in rows for f in fields])


def insert_one(row: Model) -> None:
    """Insert a row and read its key back, as `save(force_insert=True)` does without signals."""
    database = connections[DEFAULT_DB_ALIAS]
    fields, sql = _insertion(database.vendor, type(row), 1, returning=True)
    with database.cursor() as cursor:
        cursor.execute(sql, [_saved(database, field, row) for field in fields])
        row.pk = cursor.fetchone()[0]
    row._state.adding, row._state.db = False, database.alias


def update(row: Model, names: Sequence[str], *, where: Sequence[tuple[str, Any]] = ()) -> int:
    """Write these fields of a row that also has these values. Returns how many rows had."""
    database = connections[DEFAULT_DB_ALIAS]
    conditions = tuple(name for name, _ in where)
    fields, sql = _updating(database.vendor, type(row), tuple(names), conditions)
    values = [_saved(database, field, row) for field in fields]
    with database.cursor() as cursor:
        cursor.execute(sql, [*values, row.pk, *(_adapted(database, value) for _, value in where)])
        return int(cursor.rowcount)


def _saved(database: Any, field: Any, row: Model) -> Any:
    value = getattr(row, field.attname)
    if type(value) in _PLAIN and type(field) in _PLAIN_FIELDS:
        return value
    return field.get_db_prep_save(value, database)


@lru_cache(maxsize=500)
def _insertion(
    _vendor: str, model: type[Model], count: int, *, returning: bool
) -> tuple[list[Any], str]:
    quote: Any = connections[DEFAULT_DB_ALIAS].ops.quote_name
    meta = model._meta
    fields = [field for field in meta.local_concrete_fields if not field.primary_key]
    columns = ", ".join(quote(field.column) for field in fields)
    marks = ", ".join(["(" + ", ".join(["%s"] * len(fields)) + ")"] * count)
    sql = f"INSERT INTO {quote(meta.db_table)} ({columns}) VALUES {marks}"  # noqa: S608
    return fields, f"{sql} RETURNING {quote(meta.pk.column)}" if returning else sql


@lru_cache(maxsize=500)
def _updating(
    _vendor: str, model: type[Model], names: tuple[str, ...], conditions: tuple[str, ...]
) -> tuple[list[Any], str]:
    quote: Any = connections[DEFAULT_DB_ALIAS].ops.quote_name
    meta = model._meta
    fields: list[Any] = [meta.get_field(name) for name in names]
    values = ", ".join(f"{quote(field.column)} = %s" for field in fields)
    keys: list[Any] = [meta.pk, *(meta.get_field(name) for name in conditions)]
    where = " AND ".join(f"{quote(field.column)} = %s" for field in keys)
    return fields, f"UPDATE {quote(meta.db_table)} SET {values} WHERE {where}"  # noqa: S608
