"""Prepared statements ask and write what Django would have, on both databases."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.db.models import Model, QuerySet
from django.forms.models import model_to_dict
from django.test.utils import CaptureQueriesContext

from orders import journal
from orders.journal.claim import LEAST_VALIDITY, _due_now, _over_now, _unresolved, _waiting
from orders.machine import Event, State
from orders.models import Intent, Market, Transition
from orders.prepared import Prepared, insert, insert_one, update
from tests.journal.conftest import World

pytestmark = [pytest.mark.database, pytest.mark.django_db]


def columns(row: Model) -> dict[str, Any]:
    return {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}


def same(build: Callable[..., QuerySet[Any, Any]], *args: Any) -> int:
    """Compare with the queryset itself, for arguments of one shape after another."""
    expected, found = list(build(*args)), Prepared(build).rows(*args)
    assert found == expected
    for row, other in zip(found, expected, strict=True):
        if isinstance(row, Model):
            assert columns(row) == columns(other)
            assert not row._state.adding
    return len(found)


def test_rows_come_as_django_gives_them(world: World) -> None:
    intents = [world.submit(quantity=f"0.{n}5", type="limit", price="100.10") for n in range(1, 4)]
    world.claim(limit=1)
    now = datetime.now(UTC)
    pks = [intent.pk for intent in intents]
    for some in (pks, pks[:1], pks[1:]):
        assert same(lambda ids: Intent.objects.filter(pk__in=ids).order_by("pk"), some) == len(some)
    names = [intent.client_order_id for intent in intents]
    by_name = Prepared(
        lambda account_id, names: Intent.objects.filter(
            account_id=account_id, client_order_id__in=names
        ).order_by("pk")
    )
    assert [row.pk for row in by_name.rows(world.account.pk, names)] == pks
    assert same(lambda at: Intent.objects.filter(valid_until__gt=at).order_by("pk"), now) == 3
    assert same(lambda at: Intent.objects.filter(valid_until__lte=at), now) == 0
    tuples = Intent.objects.order_by("pk").values_list("pk", "market_id", "claimed_at", "price")
    assert same(lambda state: tuples.filter(state=state), "INTENT") == 2
    flat = Intent.objects.order_by("pk").values_list("quantity", flat=True)
    assert same(lambda pk: flat.filter(pk__gte=pk), pks[1]) == 2


def test_a_joined_row_brings_the_other_row_along(world: World) -> None:
    intent = world.submit()
    rows = Prepared(lambda pk: Intent.objects.select_related("market__account").filter(pk=pk))
    (row,) = rows.rows(intent.pk)
    with CaptureQueriesContext(
        connection,
    ) as asked:
        assert row.market.account.name == "main"
        assert model_to_dict(row.market) == model_to_dict(Market.objects.get(pk=row.market_id))
    assert len(asked) == 1  # the comparison's own


def test_what_waits_is_what_the_conditions_say(world: World) -> None:
    """Every row of a small journal, whatever keeps it from being sent or ends it."""
    at = datetime.now(UTC)
    soon = at + LEAST_VALIDITY
    kept = [world.submit(symbol=symbol, valid_for_s=60) for symbol in ("BTC/USDT", "ETH/USDT") * 4]
    changes: list[dict[str, Any]] = [
        {},
        {"not_before": at + timedelta(seconds=5)},
        {"not_before": at - timedelta(seconds=5)},
        {"cancel_requested_at": at},
        {"valid_until": at},
        {"state": State.UNKNOWN.value, "doubt_since": at},
        {"decided_at": at - timedelta(seconds=20)},
        {"decided_at": at - timedelta(seconds=20), "cleared_at": at},
    ]
    for intent, change in zip(kept, changes, strict=True):
        Intent.objects.filter(pk=intent.pk).update(**change)
    world.account.restored_at = at - timedelta(seconds=10)
    world.account.save()
    pk = world.account.pk
    assert same(_waiting, pk, at, soon) == 1
    assert same(_over_now, pk, soon) == 2
    assert same(_due_now, pk, at, soon, [0]) == 3
    assert same(_due_now, pk, at, soon, [0, world.eth.pk]) == 2
    assert same(_unresolved, pk, at, world.hold.epoch) == 1
    assert journal.waiting(pk, at)


def test_nothing_is_found_for_no_arguments_at_all() -> None:
    assert Prepared(lambda ids: Intent.objects.filter(pk__in=ids)).rows([]) == []


def test_an_argument_that_the_query_does_not_use_is_refused() -> None:
    unused = Prepared(lambda pk, other: Intent.objects.filter(pk=pk))
    with pytest.raises(ValueError, match="not in the query"):
        unused.rows(1, 2)
    for value in (None, True, 1.5, Decimal(1)):
        with pytest.raises(TypeError, match="cannot be an argument"):
            unused.rows(1, value)


def test_rows_are_written_as_django_writes_them(world: World) -> None:
    intent = world.in_flight()
    world.step(intent, Event.ACCEPTED, columns={"venue_order_id": "o1"}, evidence={"a": ["ü", 1]})
    line = Transition.objects.filter(intent=intent).latest("pk")
    kept = columns(line)
    market = Market.objects.create(account=world.account, symbol="X/Y", rules={"step": "0.1"})
    copy = Market(**{**columns(market), "id": None, "symbol": "X/Z"})
    insert_one(copy)
    assert copy.pk > market.pk
    stored = {**columns(Market.objects.get(pk=copy.pk)), "id": market.pk, "symbol": "X/Y"}
    assert stored == columns(Market.objects.get(pk=market.pk))
    more = [Transition(**{**kept, "id": None, "seq": 100 + n}) for n in range(3)]
    insert(more)
    rows = Transition.objects.filter(intent=intent, seq__gte=100).order_by("seq")
    for number, row in enumerate(rows):
        assert {**columns(row), "id": line.pk, "seq": line.seq} == kept
        assert row.seq == 100 + number


def test_a_row_is_changed_only_where_it_is_what_it_was(world: World) -> None:
    intent = world.submit()
    intent.price, intent.reason, intent.not_before = Decimal("0.10"), "why", datetime.now(UTC)
    names = ["price", "reason", "not_before"]
    assert update(intent, names, where=[("version", intent.version + 1)]) == 0
    assert Intent.objects.get(pk=intent.pk).reason == ""
    assert update(intent, names, where=[("version", intent.version)]) == 1
    assert columns(Intent.objects.get(pk=intent.pk)) == columns(intent)
