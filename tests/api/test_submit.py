"""POST intents, as a strategy meets it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from orders import operate
from orders.api.schemas import AdmittedOut, DeniedOut, ItemsOut
from orders.models import Intent, Market
from tests.api.conftest import Caller, decision

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]

PROBLEM = "application/problem+json"


def problem(response: Any, status: int, code: str) -> dict[str, Any]:
    assert (response.status_code, response["Content-Type"]) == (status, PROBLEM), response.content
    body = dict(response.json())
    assert (body["status"], body["code"]) == (status, code)
    assert all(body[name] for name in ("type", "title", "detail"))
    return body


def test_a_decision_is_answered_with_its_recorded_intent(trader: Caller) -> None:
    response = trader.post("intents", decision(quantity="0.250", time_in_force="GTC"))
    assert response.status_code == 201
    assert "Idempotent-Replayed" not in response
    body = AdmittedOut.model_validate(response.json())
    assert (body.quantity, body.price, body.state) == ("0.25", "61250.1", "INTENT")
    assert body.submitted_by == "token:trader"
    assert body.decided_at.endswith("Z")
    assert body.client_order_id == Intent.objects.get().client_order_id


def test_the_same_decision_again_gets_the_same_bytes(trader: Caller) -> None:
    wanted = decision(key="k1", params={"zeta": 1, "a": {"y": [1, "2"], "b": None}, "beta": True})
    first, again = trader.post("intents", wanted), trader.post("intents", wanted)
    assert (again.status_code, again.content) == (201, first.content)
    assert again["Idempotent-Replayed"] == "true"
    assert Intent.objects.count() == 1


def test_a_replay_does_not_show_what_became_of_the_order(trader: Caller) -> None:
    wanted = decision()
    first = trader.post("intents", wanted)
    operate.cancel(Intent.objects.get().pk, actor="user:ada")
    assert Intent.objects.get().state == "CANCELED"
    assert trader.post("intents", wanted).content == first.content


def test_the_same_key_with_another_quantity_is_refused_naming_both(trader: Caller) -> None:
    trader.post("intents", decision(key="k1", quantity="1"))
    body = problem(trader.post("intents", decision(key="k1", quantity="2")), 422, "key_reused")
    assert "'1'" in body["detail"]
    assert "'2'" in body["detail"]
    assert body["field"] == "key"


def test_two_decisions_of_equal_contents_are_two_orders(trader: Caller) -> None:
    trader.post("intents", decision(decided_at=at(seconds=-1)))
    trader.post("intents", decision(decided_at=at(seconds=-2)))
    assert Intent.objects.count() == 2


def test_a_two_day_old_decision_is_refused_as_stale(trader: Caller) -> None:
    body = problem(trader.post("intents", decision(decided_at=at(days=-2))), 422, "stale")
    assert body["field"] == "decided_at"
    assert not Intent.objects.exists()


def test_a_halted_market_denies_on_the_record_and_says_so_each_time(
    trader: Caller, btc: Market
) -> None:
    operate.halt(btc.pk, actor="user:ada", reason="venue maintenance")
    wanted = decision()
    first, again = trader.post("intents", wanted), trader.post("intents", wanted)
    assert (first.status_code, again.status_code) == (409, 409)
    body = DeniedOut.model_validate(first.json())
    assert (body.state, body.code) == ("DENIED", "denied")
    assert "venue maintenance" in body.detail
    assert again.content == first.content
    assert again["Idempotent-Replayed"] == "true"


def test_the_header_is_the_key(trader: Caller) -> None:
    wanted = decision()
    first = trader.post("intents", wanted, Idempotency_Key="k1")
    assert first.json()["key"] == "k1"
    again = trader.post("intents", {**wanted, "key": "k1"}, Idempotency_Key="k1")
    assert again.content == first.content
    body = problem(
        trader.post("intents", {**wanted, "key": "k1"}, Idempotency_Key="k2"), 422, "invalid"
    )
    assert body["field"] == "key"


def test_a_list_is_answered_item_by_item(trader: Caller, btc: Market) -> None:
    operate.halt(btc.pk, actor="user:ada", reason="maintenance")
    good = decision(symbol="ETH/USDT", price="3000")
    response = trader.post(
        "intents", [good, decision(), good, decision(side="hold"), {"qty": 1}, "x"]
    )
    assert response.status_code == 200
    items = ItemsOut.model_validate(response.json()).items
    assert [(item.status, item.replayed) for item in items] == [
        (201, False),
        (409, False),
        (201, True),
        (422, False),
        (422, False),
        (422, False),
    ]
    assert items[0].intent == items[2].intent
    assert items[3].problem
    assert items[3].problem.field == "side"
    assert Intent.objects.count() == 2


def test_a_list_of_501_is_refused_whole(trader: Caller) -> None:
    wanted = [decision(key=f"k{number}") for number in range(501)]
    body = problem(trader.post("intents", wanted), 422, "invalid")
    assert body["field"] == "list"
    assert not Intent.objects.exists()


def test_a_header_key_with_a_list_is_refused(trader: Caller) -> None:
    problem(trader.post("intents", [decision()], Idempotency_Key="k"), 422, "invalid")


def test_an_unknown_field_is_refused_naming_the_nearest(trader: Caller) -> None:
    body = problem(trader.post("intents", decision(qantity="1")), 422, "invalid")
    assert body["field"] == "qantity"
    assert "'quantity'" in body["detail"]


def test_every_wrong_field_is_named(trader: Caller) -> None:
    wanted = {"account": 7, "strategy": "s", "quantity": "much", "post_only": "yes"}
    body = problem(trader.post("intents", wanted), 422, "invalid")
    assert {error["field"] for error in body["errors"]} == {
        "account",
        "symbol",
        "side",
        "type",
        "quantity",
        "decided_at",
        "post_only",
    }


def test_a_json_number_is_taken_exactly_as_written(trader: Caller) -> None:
    text = (
        '{"account":"main","strategy":"s","symbol":"BTC/USDT","side":"buy","type":"limit",'
        f'"quantity":0.10000000000000000001,"price":1E+4,"decided_at":"{at()}"}}'
    )
    body = trader.post("intents", text).json()
    assert (body["quantity"], body["price"]) == ("0.10000000000000000001", "10000")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("quantity", "1e5"),
        ("quantity", "-1"),
        ("quantity", "NaN"),
        ("quantity", True),
        ("quantity", [1]),
        ("quantity", 10**90),
        ("quantity", "1" * 200),
        ("price", None),
        ("side", "hold"),
        ("type", "stop"),
        ("symbol", "DOGE/USDT"),
        ("symbol", "BTC\0USDT"),
        ("account", "nobody"),
        ("account", "\ud800"),
        ("strategy", ""),
        ("strategy", "a\nb"),
        ("decided_at", 1767225600),
        ("decided_at", "1767225600"),
        ("decided_at", "2026-01-31T12:00:00"),
        ("decided_at", "2026-02-31T12:00:00Z"),
        ("decided_at", "0001-01-01T00:00:00+23:00"),
        ("decided_at", "2026-01-31T12:00:00.1234567Z"),
        ("valid_for_s", "-1"),
        ("valid_for_s", 10**9),
        ("time_in_force", "DAY"),
        ("params", {"recvWindow": 1}),
        ("params", {"a": 1.5}),
        ("params", {"a": "\0"}),
        ("params", {"a": 2**60}),
        ("params", []),
        ("stop_price", "1"),
        ("reduce_only", True),
        ("key", 5),
        ("key", "k" * 201),
    ],
)
def test_what_is_invalid_is_refused_naming_the_field(
    trader: Caller, field: str, value: object
) -> None:
    body = problem(trader.post("intents", decision(**{field: value})), 422, "invalid")
    assert body["field"] == field
    assert not Intent.objects.exists()


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ("", 400, "malformed"),
        ("{", 400, "malformed"),
        ('{"a": NaN}', 400, "malformed"),
        ("[" * 100_000, 400, "malformed"),
        ('{"a": ' + "9" * 5000 + "}", 400, "malformed"),
        (b"\xff", 400, "malformed"),
        ('{"quantity": "1", "quantity": "100"}', 422, "invalid"),
        ('"text"', 422, "invalid"),
        ("x" * 3_000_000, 413, "too_large"),
    ],
)
def test_a_body_that_cannot_be_read_is_a_problem(
    trader: Caller, body: str | bytes, status: int, code: str
) -> None:
    problem(trader.post("intents", body), status, code)


def at(**ago: float) -> str:
    return (datetime.now(UTC) + timedelta(**ago)).isoformat()
