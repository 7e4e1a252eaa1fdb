"""A decision is admitted once, or refused with the field and the remedy."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from orders import intake
from orders.fields import plain
from orders.intake import Decision, DecisionError, KeyReusedError, submit
from orders.machine import State
from orders.models import Account, Intent, Transition
from tests.journal.conftest import World

pytestmark = [pytest.mark.database, pytest.mark.django_db]


def decision(**changes: Any) -> Decision:
    values: dict[str, Any] = {
        "account": "main",
        "strategy": "s1",
        "symbol": "BTC/USDT",
        "side": "buy",
        "type": "limit",
        "quantity": "0.10",
        "price": "100",
        "decided_at": datetime.now(UTC),
    }
    return Decision(**{**values, **changes})


def test_the_same_decision_is_one_row(world: World) -> None:
    at = datetime.now(UTC)
    first = submit(decision(decided_at=at))
    again = submit(decision(decided_at=at, quantity="0.1", price="100.00"))
    assert first.pk == again.pk
    assert Intent.objects.count() == 1
    assert Transition.objects.filter(subject="intent").count() == 1


def test_the_same_key_is_one_row(world: World) -> None:
    at = datetime.now(UTC)
    assert (
        submit(decision(key="k", decided_at=at)).pk == submit(decision(key="k", decided_at=at)).pk
    )


def test_two_decisions_of_equal_contents_within_a_second_are_two_rows(world: World) -> None:
    at = datetime.now(UTC)
    one = submit(decision(decided_at=at))
    two = submit(decision(decided_at=at + timedelta(milliseconds=1)))
    assert one.client_order_id != two.client_order_id


def test_the_same_key_with_other_contents_is_refused_naming_both(world: World) -> None:
    at = datetime.now(UTC)
    submit(decision(key="k", decided_at=at))
    with pytest.raises(KeyReusedError, match=r"quantity was '0.1', is now '0.2'"):
        submit(decision(key="k", decided_at=at, quantity="0.2"))
    assert Intent.objects.count() == 1


def test_a_two_day_old_decision_is_refused_even_where_it_is_on_record(world: World) -> None:
    intent = submit(decision(key="old"))
    then = datetime.now(UTC) - timedelta(days=2)
    Intent.objects.filter(pk=intent.pk).update(decided_at=then)
    with pytest.raises(DecisionError) as caught:
        submit(decision(key="old", decided_at=then))
    assert (caught.value.code, caught.value.field) == ("stale", "decided_at")


def test_a_decision_past_its_validity_is_refused_and_not_recorded(world: World) -> None:
    with pytest.raises(DecisionError) as caught:
        submit(decision(decided_at=datetime.now(UTC) - timedelta(seconds=61)))
    assert caught.value.code == "stale"
    assert Intent.objects.count() == 0


def test_a_recorded_decision_is_answered_after_its_validity(world: World) -> None:
    at = datetime.now(UTC) - timedelta(seconds=59)
    intent = submit(decision(decided_at=at, valid_for_s=60))
    Intent.objects.filter(pk=intent.pk).update(valid_until=at)
    assert submit(decision(decided_at=at, valid_for_s=60)).pk == intent.pk


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("account", {"account": "nobody"}),
        ("symbol", {"symbol": "XXX/YYY"}),
        ("strategy", {"strategy": ""}),
        ("strategy", {"strategy": "x" * 65}),
        ("strategy", {"strategy": "a\nb"}),
        ("key", {"key": "x" * 201}),
        ("side", {"side": "hold"}),
        ("type", {"type": "stop"}),
        ("quantity", {"quantity": "0"}),
        ("quantity", {"quantity": "-1"}),
        ("quantity", {"quantity": "NaN"}),
        ("quantity", {"quantity": "Infinity"}),
        ("quantity", {"quantity": "one"}),
        ("quantity", {"quantity": 0.1}),
        ("quantity", {"quantity": True}),
        ("quantity", {"quantity": "1e-60"}),
        ("quantity", {"quantity": "1e999999999"}),
        ("account", {"account": "a\0b"}),
        ("symbol", {"symbol": "a\0b"}),
        ("params", {"params": {"x": 1.5}}),
        ("params", {"params": {"x": "\0"}}),
        ("decided_at", {"decided_at": datetime.max.replace(tzinfo=timezone(-timedelta(hours=1)))}),
        ("price", {"price": None}),
        ("price", {"type": "market"}),
        ("price", {"price": "-5"}),
        ("time_in_force", {"time_in_force": "SOON"}),
        ("time_in_force", {"type": "market", "price": None, "time_in_force": "GTC"}),
        ("post_only", {"post_only": True, "time_in_force": "IOC"}),
        ("reduce_only", {"reduce_only": True}),
        ("stop_price", {"stop_price": "90"}),
        ("valid_for_s", {"valid_for_s": 0}),
        ("valid_for_s", {"valid_for_s": float("nan")}),
        ("valid_for_s", {"valid_for_s": 90_000}),
        ("decided_at", {"decided_at": datetime(2026, 1, 1)}),  # noqa: DTZ001
        ("decided_at", {"decided_at": datetime.now(UTC) + timedelta(days=1)}),
        ("params", {"params": {"newClientOrderId": "mine"}}),
        ("params", {"params": {"recvWindow": 60_000}}),
        ("params", {"params": {"client-order-id": "mine"}}),
        ("params", {"params": {"x": object()}}),
    ],
)
def test_bad_input_is_refused_naming_its_field(
    world: World, field: str, changes: dict[str, Any]
) -> None:
    with pytest.raises(DecisionError) as caught:
        submit(decision(**changes))
    assert (caught.value.code, caught.value.field) == ("invalid", field)
    assert Intent.objects.count() == 0


def test_a_list_is_answered_item_by_item_in_order(world: World) -> None:
    at = datetime.now(UTC)
    first = decision(key="a", decided_at=at)
    items = [first, decision(quantity="0"), first, decision(key="b"), decision(key="a")]
    answers = intake.submit_many(items, actor="token:x")
    kinds = [
        answer.code if isinstance(answer, DecisionError) else answer.created for answer in answers
    ]
    assert kinds == [True, "invalid", False, True, "key_reused"]


def test_a_list_that_is_too_long_is_refused_whole(world: World) -> None:
    with pytest.raises(DecisionError, match="at most 500"):
        intake.submit_many([decision()] * 501, actor="x")


def test_a_halted_market_denies_on_the_record_and_stays_denied(world: World) -> None:
    world.btc.state = "HALTED"
    world.btc.halted_reason = "maintenance"
    world.btc.save()
    item = decision(key="k")
    denied = submit(item)
    assert (denied.state, denied.admitted_as) == (State.DENIED, State.DENIED)
    assert "maintenance" in denied.reason
    world.btc.state = "OPEN"
    world.btc.save()
    assert submit(item).state == State.DENIED


def test_a_collision_of_ids_is_denied_and_never_shared(world: World) -> None:
    one = submit(decision(key="one"))
    item = decision(key="two")
    two = submit(item)
    name = two.client_order_id
    Intent.objects.filter(pk=two.pk).update(decision_key="0" * 64)
    with pytest.raises(DecisionError) as caught:
        submit(item)
    assert caught.value.code == "id_collision"
    assert name in caught.value.message
    assert one.client_order_id != name


def test_names_of_two_accounts_differ(world: World) -> None:
    at = datetime.now(UTC)
    second = Account.objects.create(name="second", exchange="binance")
    second.markets.create(symbol="BTC/USDT")
    one, two = (submit(decision(account=name, decided_at=at)) for name in ("main", "second"))
    assert one.client_order_id != two.client_order_id


def test_decimals_are_plain() -> None:
    from decimal import Decimal

    texts = ["1E+3", "0.1000", "-0", "1E-7", "100"]
    assert [plain(Decimal(text)) for text in texts] == ["1000", "0.1", "0", "0.0000001", "100"]
