"""A: the answer is lost. One POST, one order, and its true state is known within seconds."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.stack.conftest import Stack, wire
from tests.support import simulator as faults

HTML = "<html><body>gateway error</body></html>"
MINUS_1007 = '{"code":-1007,"msg":"Timeout waiting for response from backend server. Execution status unknown."}'  # noqa: E501


def test_a_plain_order_is_placed_once_and_filled(main: Stack, symbol: str) -> None:
    name = main.submit(symbol)
    intent = main.wait(name, "FILLED")
    assert intent["filled"] == "1"
    assert main.posts(name) == 1
    main.check(name)


def test_a1_an_executed_order_that_is_never_answered_is_found(polled: Stack, symbol: str) -> None:
    polled.venue.faults(faults.silent_answer(symbol=wire(symbol)))
    name = polled.submit(symbol)
    polled.wait(name, "FILLED")
    assert polled.states(name) == [
        "INTENT", "IN_FLIGHT", "UNKNOWN", "RECONCILING", "ACKED", "FILLED",
    ]  # fmt: skip
    assert polled.posts(name) == 1
    polled.check(name)


def test_a2_a_request_that_never_arrives_is_sent_again_once(polled: Stack, symbol: str) -> None:
    polled.venue.faults(faults.dropped_before(symbol=wire(symbol)))
    name = polled.submit(symbol)
    intent = polled.wait(name, "FILLED")
    assert polled.states(name) == [
        "INTENT", "IN_FLIGHT", "UNKNOWN", "RECONCILING", "INTENT", "IN_FLIGHT", "ACKED", "FILLED",
    ]  # fmt: skip
    assert intent["attempt"] == 2
    assert (polled.posts(name), len(polled.orders(name))) == (2, 1)
    polled.check(name)


def test_a3_a_filled_order_whose_connection_is_cut_is_found(polled: Stack, symbol: str) -> None:
    polled.venue.faults(faults.lost_answer(symbol=wire(symbol)))
    name = polled.submit(symbol)
    polled.wait(name, "FILLED")
    assert polled.states(name)[-4:] == ["UNKNOWN", "RECONCILING", "ACKED", "FILLED"]
    assert polled.posts(name) == 1
    polled.check(name)


@pytest.mark.parametrize("execute", [True, False], ids=["executed", "not executed"])
def test_a4_a_504_with_html_is_right_either_way(polled: Stack, symbol: str, execute: bool) -> None:
    polled.venue.faults(
        faults.answered(status=504, body=HTML, execute=execute, symbol=wire(symbol))
    )
    name = polled.submit(symbol)
    polled.wait(name, "FILLED")
    assert "UNKNOWN" in polled.states(name)
    assert polled.posts(name) == (1 if execute else 2)
    assert len(polled.orders(name)) == 1
    polled.check(name)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        pytest.param(503, '{"code":-1000,"msg":"Unknown error, please try again."}', id="a5: 503"),
        pytest.param(408, MINUS_1007, id="a6: -1007 with 408"),
        pytest.param(400, MINUS_1007, id="a6: -1007 with 400"),
        pytest.param(200, HTML, id="a8: 200 with HTML"),
        pytest.param(200, "", id="a8: 200 with nothing"),
        pytest.param(200, "{}", id="a8: 200 with {}"),
        pytest.param(520, HTML, id="a8: 520"),
        pytest.param(524, "", id="a8: 524"),
        pytest.param(529, "", id="a8: 529"),
    ],
)  # fmt: skip
def test_an_answer_that_tells_nothing_is_unknown_and_never_retried(
    polled: Stack, symbol: str, status: int, body: str
) -> None:
    polled.venue.faults(
        faults.answered(status=status, body=body, execute=True, symbol=wire(symbol))
    )
    name = polled.submit(symbol)
    polled.wait(name, "FILLED")
    assert "UNKNOWN" in polled.states(name)
    assert "REJECTED" not in polled.states(name)
    assert polled.posts(name) == 1
    polled.check(name)


def test_a7_half_an_answer_is_no_answer(polled: Stack, symbol: str) -> None:
    cut: dict[str, Any] = {"cut_body": {"fraction": 0.5}}
    polled.venue.faults(faults.fault("create", action=cut, symbol=wire(symbol)))
    name = polled.submit(symbol)
    polled.wait(name, "FILLED")
    assert "UNKNOWN" in polled.states(name)
    assert polled.posts(name) == 1
    polled.check(name)


def test_a9_a_redirect_is_never_followed(polled: Stack, symbol: str) -> None:
    redirect: dict[str, Any] = {"redirect": {"status": 307}}
    polled.venue.faults(faults.fault("create", action=redirect, symbol=wire(symbol)))
    name = polled.submit(symbol)
    polled.wait(name, "FILLED")
    requests = polled.venue.ledger(client_order_id=name)["requests"]
    # The redirected request placed nothing; what placed the order is the proven resend.
    assert [row["outcome"] for row in requests] == ["redirected", "executed"]
    assert "absent" in polled.events(name)
    polled.check(name)


def test_a10_a_reused_connection_that_closes_is_not_asked_again(polled: Stack, symbol: str) -> None:
    warm = polled.submit(symbol)
    polled.wait(warm, "FILLED")
    close: dict[str, Any] = {"close_reused": {"execute": True}}
    polled.venue.faults(faults.fault("create", action=close, symbol=wire(symbol)))
    name = polled.submit(symbol)
    polled.wait(name, "FILLED")
    assert polled.posts(name) == 1
    polled.check(name)


def test_a11_a_second_click_during_a_slow_answer_shows_the_first(
    polled: Stack, symbol: str
) -> None:
    polled.venue.faults(faults.late(after_ms=3000, symbol=wire(symbol)))
    decision = polled.decision(symbol)
    first = polled.call("POST", "intents", decision)
    again = polled.call("POST", "intents", decision)
    assert (first.status, again.status) == (201, 201)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert first.body == again.body
    name = first.body["client_order_id"]
    polled.wait(name, "FILLED")
    assert polled.posts(name) == 1
    polled.check(name)


def test_a12_a_push_resolves_a_request_that_is_still_unanswered(main: Stack, symbol: str) -> None:
    early: dict[str, Any] = {"push_before_answer": {"delay_ms": 900}}
    main.venue.faults(faults.fault("create", action=early, symbol=wire(symbol)))
    name = main.submit(symbol, type="limit", price="90")
    intent = main.wait(name, "ACKED", "LIVE")
    assert intent["transitions"][2]["event"] == "accepted"
    assert intent["transitions"][2]["reason"].startswith("push")
    assert "UNKNOWN" not in main.states(name)
    main.call("POST", f"intents/{name}/cancel")
    main.wait(name, "CANCELED")
    assert main.posts(name) == 1
    main.check(name)


def test_a14_a_definite_refusal_is_rejected_at_once(polled: Stack, symbol: str) -> None:
    before = polled.venue.ledger(symbol=wire(symbol))["calls"]
    name = polled.submit(symbol, quantity="1000000")
    intent = polled.wait(name)
    assert intent["state"] == "REJECTED"
    assert "insufficient balance" in intent["reason"]
    assert polled.states(name) == ["INTENT", "IN_FLIGHT", "REJECTED"]
    after = polled.venue.ledger(symbol=wire(symbol))["calls"]
    looked = {call for call in after if after[call] != before.get(call)}
    assert not looked & {"query", "trades"}  # the regular sweep lists orders, whatever happens
    assert polled.posts(name) == 1
    polled.check(name)


def test_a14_a_filter_of_the_venue_is_its_own_words(polled: Stack, symbol: str) -> None:
    name = polled.submit(symbol, type="limit", price="0.01", quantity="1")
    intent = polled.wait(name)
    assert intent["state"] == "REJECTED"
    assert intent["reason"]
    polled.check(name)


def test_g1_fifty_submissions_at_once_are_one_order(main: Stack, symbol: str) -> None:
    decision = main.decision(symbol)
    answers: list[Any] = []
    barrier = threading.Barrier(50)

    def submit() -> None:
        barrier.wait()
        answers.append(main.call("POST", "intents", decision))

    main.desk.token("trader")
    threads = [threading.Thread(target=submit) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [answer.status for answer in answers] == [201] * 50
    assert all(answer.body == answers[0].body for answer in answers)
    replays = [answer for answer in answers if answer.headers.get("Idempotent-Replayed") == "true"]
    assert len(replays) == 49
    name = answers[0].body["client_order_id"]
    main.wait(name, "FILLED")
    assert main.posts(name) == 1
    main.check(name)


def test_g2_a_key_with_another_quantity_is_refused_naming_both(main: Stack, symbol: str) -> None:
    decision = main.decision(symbol)
    first = main.call("POST", "intents", decision)
    other = main.call("POST", "intents", {**decision, "quantity": "2"})
    assert (other.status, other.body["code"]) == (422, "key_reused")
    assert "'1'" in other.body["detail"]
    assert "'2'" in other.body["detail"]
    name = first.body["client_order_id"]
    main.wait(name, "FILLED")
    assert main.posts(name) == 1
    main.check(name)


def test_g3_a_two_day_old_webhook_is_refused_as_stale(main: Stack, symbol: str) -> None:
    answer = main.call("POST", "intents", main.decision(symbol, decided_at="2026-01-01T00:00:00Z"))
    assert (answer.status, answer.body["code"]) == (422, "stale")
    assert answer.body["field"] == "decided_at"


def test_g4_two_decisions_of_equal_contents_are_two_orders(main: Stack, symbol: str) -> None:
    names = [main.submit(symbol, key="") for _ in range(2)]
    assert names[0] != names[1]
    for name in names:
        main.wait(name, "FILLED")
        assert main.posts(name) == 1
        main.check(name)
