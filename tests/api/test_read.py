"""Reading intents, markets, alerts and the journal."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orders import journal, operate
from orders.api import cursor
from orders.api.schemas import (
    AlertsOut,
    IntentDetailOut,
    IntentsOut,
    MarketsOut,
    TransitionsOut,
)
from orders.clock import SYSTEM
from orders.journal import AlertDraft, Change, Window
from orders.machine import Event, Note
from orders.models import Account, Alert, Intent, Market, Transition
from orders.roles import Role
from tests.api.conftest import Caller, add_market, caller, decision, now_text
from tests.api.test_submit import problem
from tests.support.lane import recovered

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]


def submit(trader: Caller, count: int = 1, **changes: Any) -> list[str]:
    """Client order IDs of new intents, in the order of their numbers."""
    made = []
    for _ in range(count):
        response = trader.post("intents", decision(decided_at=now_text(), **changes))
        assert response.status_code == 201, response.content
        made.append(response.json()["client_order_id"])
    return made


def put_in_doubt(*names: str) -> None:
    """As a lane would: claimed, sent, no answer."""
    account = Account.objects.get(name="main")
    taken = journal.take(account.pk, owner="lane-1", at=SYSTEM.now())
    assert taken
    hold, _ = taken
    recovered(hold)
    window = Window(limit=100, at=SYSTEM.now(), offset_ms=0, expiry_ms=3000, timeout_ms=5000)
    claimed = journal.claim(hold, window, actor="lane:lane-1").intents
    evidence = {"body": "<b>cut</b>", "error": "ReadTimeout"}
    changes = [
        Change(intent.pk, Event.NO_ANSWER, reason="no answer", evidence=evidence)
        for intent in claimed
        if intent.client_order_id in names
    ]
    journal.record(changes, actor="lane:lane-1", at=SYSTEM.now(), hold=hold)


def test_an_intent_shows_its_journal_with_evidence(trader: Caller, viewer: Caller) -> None:
    [name] = submit(trader)
    put_in_doubt(name)
    body = IntentDetailOut.model_validate(viewer.get(f"intents/{name}").json())
    assert (body.state, body.terminal, body.attempt, body.fills) == ("UNKNOWN", False, 1, [])
    assert body.doubt_since is not None
    assert [
        (line.seq, line.event, line.from_state, line.to_state) for line in body.transitions
    ] == [
        (1, "submitted", None, "INTENT"),
        (2, "claimed", "INTENT", "IN_FLIGHT"),
        (3, "no_answer", "IN_FLIGHT", "UNKNOWN"),
    ]
    assert body.transitions[2].evidence == {"body": "<b>cut</b>", "error": "ReadTimeout"}


def test_an_unknown_intent_is_404(viewer: Caller) -> None:
    problem(viewer.get("intents/nobody"), 404, "not_found")
    problem(viewer.get("intents/no%00body"), 422, "invalid")


def test_an_id_of_two_accounts_asks_which(trader: Caller, viewer: Caller) -> None:
    [name] = submit(trader)
    twin = Intent.objects.get()
    twin.pk, twin.account, twin.market = None, *_other()
    twin.save(force_insert=True)
    body = problem(viewer.get(f"intents/{name}"), 422, "invalid")
    assert body["field"] == "account"
    assert viewer.get(f"intents/{name}?account=other").json()["account"] == "other"


def _other() -> tuple[Account, Market]:
    market = Market.objects.get(account__name="other")
    return market.account, market


def test_the_list_filters(trader: Caller, viewer: Caller) -> None:
    [btc] = submit(trader)
    [eth] = submit(trader, symbol="ETH/USDT", strategy="mean")
    [far] = submit(trader, account="other")
    operate.cancel(Intent.objects.get(client_order_id=eth).pk, actor="user:ada")
    middle = Intent.objects.get(client_order_id=eth).created_at.isoformat()

    def shown(**query: Any) -> list[str]:
        answer = viewer.get("intents", query)
        assert answer.status_code == 200, answer.content
        return [item.client_order_id for item in IntentsOut.model_validate(answer.json()).items]

    assert shown() == [far, eth, btc]
    assert shown(account="main") == [eth, btc]
    assert shown(symbol="BTC/USDT") == [far, btc]
    assert shown(account="main", symbol="BTC/USDT") == [btc]
    assert shown(strategy="mean") == [eth]
    assert shown(state="CANCELED") == [eth]
    assert shown(state=["CANCELED", "INTENT"]) == [far, eth, btc]
    assert shown(since=middle) == [far, eth]
    assert shown(until=middle) == [btc]
    assert shown(account="nobody") == []


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=0", "limit"),
        ("limit=501", "limit"),
        ("cursor=nonsense", "cursor"),
        ("cursor=%00", "cursor"),
        ("state=GONE", "state"),
        ("since=yesterday", "since"),
        ("account=%00", "account"),
    ],
)
def test_a_wrong_filter_is_refused_naming_it(viewer: Caller, query: str, field: str) -> None:
    body = problem(viewer.get(f"intents?{query}"), 422, "invalid")
    assert field in {error["field"] for error in body["errors"]} | {body["field"]}


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(limits=st.lists(st.integers(1, 12), min_size=1, max_size=40), late=st.integers(0, 5))
def test_pages_show_every_row_once_whatever_is_added_meanwhile(
    trader: Caller, viewer: Caller, limits: list[int], late: int
) -> None:
    if Intent.objects.count() < 25:
        submit(trader, 25)
    there = list(Intent.objects.order_by("-pk").values_list("client_order_id", flat=True))
    seen: list[str] = []
    place: str | None = ""
    for turn in range(100):
        query = {"limit": limits[turn % len(limits)], "cursor": place}
        page = viewer.get("intents", query).json()
        seen += [item["client_order_id"] for item in page["items"]]
        if turn < late:
            submit(trader)
        place = page["next"]
        if place is None:
            break
    assert seen == there


@given(st.integers(1, cursor.MAX_ID))
def test_a_cursor_reads_back_as_it_was_written(number: int) -> None:
    assert cursor.decode(cursor.encode(number)) == number


def test_cancel_is_remembered_and_asking_again_changes_nothing(trader: Caller) -> None:
    [name] = submit(trader)
    put_in_doubt(name)
    first = trader.post(f"intents/{name}/cancel", {"reason": "signal gone"})
    again = trader.post(f"intents/{name}/cancel")
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.json() == again.json()
    assert first.json()["state"] == "UNKNOWN"
    assert first.json()["cancel_requested_by"] == "token:trader"
    assert Transition.objects.filter(event=Note.CANCEL_REQUESTED).count() == 1


def test_a_waiting_intent_is_canceled_at_once(trader: Caller) -> None:
    [name] = submit(trader)
    assert trader.post(f"intents/{name}/cancel").json()["state"] == "CANCELED"


def test_markets_show_doubt_and_position(trader: Caller, viewer: Caller) -> None:
    [name] = submit(trader)
    put_in_doubt(name)
    markets = MarketsOut.model_validate(viewer.get("markets", {"account": "main"}).json()).items
    shown = [(market.symbol, market.state, market.blocked, market.unresolved) for market in markets]
    assert shown == [("BTC/USDT", "OPEN", True, 1), ("ETH/USDT", "OPEN", False, 0)]
    assert markets[0].position == "0"
    assert markets[0].last_event_at is not None
    problem(viewer.get("markets?state=BLOCKED"), 422, "invalid")


def test_the_number_of_queries_does_not_grow_with_the_markets(viewer: Caller) -> None:
    with CaptureQueriesContext(
        connection,
    ) as few:
        viewer.get("markets")
    for number in range(30):
        add_market(f"account-{number}", "BTC/USDT")
    with CaptureQueriesContext(connection) as many:
        viewer.get("markets")
    assert len(many) == len(few) <= 4


def test_an_operator_halts_and_resumes_by_either_spelling(operator: Caller) -> None:
    halted = operator.post("markets/main/BTC%2FUSDT/halt", {"reason": "maintenance"})
    assert (halted.status_code, halted.json()["state"]) == (200, "HALTED")
    assert "maintenance" in halted.json()["halted_reason"]
    resumed = operator.post("markets/main/BTC/USDT/resume", {"reason": "over"})
    assert (resumed.status_code, resumed.json()["state"]) == (200, "OPEN")
    assert operator.post("markets/main/BTC%2FUSDT/reconcile").status_code == 200
    acts = Transition.objects.filter(subject="market").values_list("event", "actor")
    assert list(acts.order_by("pk")) == [
        ("halted", "token:operator"),
        ("resumed", "token:operator"),
        ("reconcile_requested", "token:operator"),
    ]


def test_resume_is_refused_while_something_is_unresolved(trader: Caller, operator: Caller) -> None:
    [name] = submit(trader)
    put_in_doubt(name)
    operator.post("markets/main/BTC%2FUSDT/halt", {"reason": "doubt"})
    body = problem(
        operator.post("markets/main/BTC%2FUSDT/resume", {"reason": "go"}), 409, "refused"
    )
    assert name in body["detail"]
    assert body["market"]["state"] == "HALTED"
    assert body["market"]["unresolved"] == 1


def test_an_act_without_a_reason_is_refused(operator: Caller) -> None:
    for body in (None, {}, {"reason": "  "}):
        answer = problem(operator.post("markets/main/BTC%2FUSDT/halt", body), 422, "invalid")
        assert answer["field"] == "reason"
    assert Market.objects.filter(state="HALTED").count() == 0


def test_an_unknown_market_is_404(operator: Caller) -> None:
    problem(operator.post("markets/main/DOGE/halt", {"reason": "x"}), 404, "not_found")


def alert(**more: Any) -> Alert:
    draft = AlertDraft(
        kind="orphan",
        topic=more.pop("topic", "orphan:1"),
        severity="critical",
        message="an order that nobody knows",
        remedy="look",
        **more,
    )
    return journal.raise_alert(draft, actor="lane:1", at=SYSTEM.now())


def test_alerts_are_listed_and_acknowledged_with_a_note(operator: Caller, btc: Market) -> None:
    row = alert(account_id=btc.account_id, market_id=btc.pk)
    listed = AlertsOut.model_validate(operator.get("alerts", {"state": "OPEN"}).json()).items
    assert [(item.id, item.account, item.symbol) for item in listed] == [
        (row.pk, "main", "BTC/USDT")
    ]
    path = f"alerts/{row.pk}/acknowledge"
    assert problem(operator.post(path), 422, "invalid")["field"] == "note"
    done = operator.post(path, {"note": "asked the venue"})
    assert (done.status_code, done.json()["state"]) == (200, "ACKNOWLEDGED")
    assert operator.post(path, {"note": "me too"}).json()["note"] == "asked the venue"
    assert operator.get("alerts", {"state": "OPEN"}).json()["items"] == []
    journal.resolve(row.pk, actor="lane:1", reason="gone", at=SYSTEM.now())
    body = problem(operator.post(path, {"note": "late"}), 409, "refused")
    assert body["alert"]["state"] == "RESOLVED"
    problem(operator.post("alerts/999/acknowledge", {"note": "x"}), 404, "not_found")
    problem(operator.post(f"alerts/{10**30}/acknowledge", {"note": "x"}), 422, "invalid")


def test_the_journal_is_read_page_by_page_in_order(trader: Caller, viewer: Caller) -> None:
    submit(trader, 7)
    after, seen = start(), []
    while True:
        page = TransitionsOut.model_validate(
            viewer.get("transitions", {"after": after, "limit": 3}).json()
        )
        seen += [line.id for line in page.items]
        if page.next_after == after:
            break
        after = page.next_after
    assert seen == list(Transition.objects.order_by("pk").values_list("pk", flat=True))
    assert len(seen) == 7


def test_a_restricted_token_sees_its_account_and_strategy_only(
    trader: Caller, operator: Caller, btc: Market
) -> None:
    [mine] = submit(trader)
    [other_strategy] = submit(trader, strategy="mean")
    [other_account] = submit(trader, account="other")
    own = alert(account_id=btc.account_id, intent_id=_pk(mine))
    alert(account_id=btc.account_id, intent_id=_pk(other_strategy), topic="2")
    alert(topic="3")
    narrow = caller("narrow", Role.ADMINISTRATOR, accounts=["main"], strategies=["breakout"])
    assert _ids(narrow.get("intents")) == [mine]
    assert {item["account"] for item in narrow.get("markets").json()["items"]} == {"main"}
    assert [item["id"] for item in narrow.get("alerts").json()["items"]] == [own.pk]
    lines = narrow.get("transitions", {"after": start()}).json()
    assert {line["client_order_id"] for line in lines["items"]} == {mine}
    assert lines["next_after"] == Transition.objects.latest("pk").pk
    for name in (other_strategy, other_account):
        problem(narrow.get(f"intents/{name}"), 404, "not_found")
        problem(narrow.post(f"intents/{name}/cancel"), 404, "not_found")
    problem(narrow.post("markets/other/BTC%2FUSDT/halt", {"reason": "x"}), 404, "not_found")
    problem(narrow.post("markets/main/BTC%2FUSDT/halt", {"reason": "x"}), 403, "forbidden")
    problem(narrow.post("intents", decision(account="other")), 403, "forbidden")
    problem(narrow.post("intents", decision(strategy="mean")), 403, "forbidden")
    assert narrow.post("intents", decision()).status_code == 201
    [item] = narrow.post("intents", [decision(strategy="mean")]).json()["items"]
    assert (item["status"], item["problem"]["code"]) == (403, "forbidden")


def start() -> int:
    """The number before the first line; emptying a table does not turn its counter back."""
    return Transition.objects.earliest("pk").pk - 1


def _pk(name: str) -> int:
    return Intent.objects.get(client_order_id=name).pk


def _ids(response: Any) -> list[str]:
    return [item["client_order_id"] for item in response.json()["items"]]
