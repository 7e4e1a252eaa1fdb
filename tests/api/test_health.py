"""What machines that watch the desk are told."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from orders import journal, operate
from orders.clock import SYSTEM
from orders.models import Account, Lease, Market
from orders.roles import Role
from tests.api.conftest import Caller, add_market, caller, decision
from tests.api.test_read import put_in_doubt, submit
from tests.support.lane import recovered

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]


def stranger() -> Client:
    """Somebody on another machine."""
    return Client(REMOTE_ADDR="192.0.2.7")


def test_alive_is_said_without_asking_the_database() -> None:
    with CaptureQueriesContext(connection) as asked:
        assert Client().get("/healthz").content == b"ok\n"
    assert len(asked) == 0


def ready() -> tuple[int, dict[str, Any]]:
    response = Client().get("/readyz")
    return response.status_code, response.json()


def test_ready_means_that_every_active_account_is_held_and_recovered(btc: Market) -> None:
    status, body = ready()
    assert (status, set(body["lacking"])) == (503, {"main", "other"})
    assert "no lane holds it" in body["lacking"]["main"]
    Account.objects.filter(name="other").update(active=False)
    taken = journal.take(btc.account_id, owner="lane-1", at=SYSTEM.now())
    assert taken
    assert "not recovered" in ready()[1]["lacking"]["main"]
    recovered(taken[0])
    assert ready() == (200, {"ready": True})
    Lease.objects.filter(account=btc.account).update(deadline=SYSTEM.now().replace(year=2020))
    status, body = ready()
    assert status == 503
    assert "is silent" in body["lacking"]["main"]


def test_an_account_without_a_lease_row_is_not_ready(btc: Market) -> None:
    Lease.objects.all().delete()
    assert ready()[0] == 503


def test_strangers_learn_the_status_but_no_names(btc: Market) -> None:
    response = stranger().get("/readyz")
    assert (response.status_code, response.json()) == (503, {"ready": False})


def test_metrics_tell_doubt_halts_alerts_and_lanes(trader: Caller, btc: Market) -> None:
    [name] = submit(trader)
    put_in_doubt(name)
    operate.halt(btc.pk, actor="user:ada", reason="x")
    text = Client().get("/metrics").content.decode()
    for line in (
        'orderdesk_intents{account="main",state="UNKNOWN"} 1.0',
        'orderdesk_intents{account="other",state="INTENT"} 0.0',
        'orderdesk_unresolved_intents{account="main"} 1.0',
        'orderdesk_market_halted{account="main",symbol="BTC/USDT"} 1.0',
        'orderdesk_market_halted{account="main",symbol="ETH/USDT"} 0.0',
        'orderdesk_alerts{severity="critical",state="OPEN"} 1.0',
        'orderdesk_lane_epoch{account="main"} 1.0',
        'orderdesk_account_ready{account="other"} 0.0',
    ):
        assert f"{line}\n" in text
    assert 'orderdesk_oldest_unresolved_seconds{account="main"} 0.0\n' not in text


def test_metrics_take_a_fixed_number_of_queries(btc: Market) -> None:
    with CaptureQueriesContext(connection) as few:
        Client().get("/metrics")
    for number in range(20):
        add_market(f"account-{number}", "BTC/USDT")
    with CaptureQueriesContext(connection) as many:
        Client().get("/metrics")
    assert len(many) == len(few) <= 8


def test_metrics_read_only_the_intents_that_are_not_at_their_end(btc: Market) -> None:
    with CaptureQueriesContext(connection) as asked:
        Client().get("/metrics")
    counting = [query["sql"] for query in asked if '"orders_intent"' in query["sql"]]
    assert counting
    if connection.vendor == "sqlite":
        for sql in counting:
            with connection.cursor() as cursor:
                cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
                plan = "\n".join(str(row[-1]) for row in cursor.fetchall())
            assert "intent_active" in plan, plan


def test_metrics_are_for_loopback_or_a_token_that_may_see_all(viewer: Caller) -> None:
    assert stranger().get("/metrics").status_code == 401
    through_a_proxy = Client().get("/metrics", headers={"X-Forwarded-For": "192.0.2.7"})
    assert through_a_proxy.status_code == 401
    narrow = caller("narrow", Role.OPERATOR, accounts=["main"])
    for token, status in ((viewer.token, 200), (narrow.token, 401), ("odt_x", 401)):
        response = stranger().get("/metrics", headers={"Authorization": f"Bearer {token}"})
        assert response.status_code == status


def test_a_decision_may_not_be_posted_to_a_health_check(trader: Caller) -> None:
    for path in ("/healthz", "/readyz", "/metrics"):
        assert Client().post(path, decision()).status_code == 405
