"""F6: the journal comes back from a backup while the venue went on."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator

import psycopg
import pytest

from tests.stack.conftest import EXPIRY_MS, TIMEOUT_MS, Stack
from tests.support.desk import Desk
from tests.support.simulator import Simulator

LOST, QUIET = "T01/USDT", "T02/USDT"


@pytest.fixture
def stack(database: str | None) -> Iterator[Stack]:
    with (
        Simulator() as venue,
        Desk(
            venue.url,
            database_url=database,
            accounts={"main": [LOST, QUIET]},
            timeout_ms=TIMEOUT_MS,
            request_expiry_ms=EXPIRY_MS,
        ) as desk,
    ):
        yield Stack(desk, venue)


def back_up(stack: Stack, database: str | None) -> str:
    """A copy of the stopped desk's journal."""
    if database is None:
        source = stack.desk.data / "db.sqlite3"
        shutil.copy(source, f"{source}.backup")
        return f"{source}.backup"
    server, _, name = database.rpartition("/")
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}_backup TEMPLATE {name}")
    return f"{database}_backup"


def restore(stack: Stack, backup: str, database: str | None) -> None:
    if database is None:
        target = stack.desk.data / "db.sqlite3"
        for suffix in ("-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                (stack.desk.data / f"db.sqlite3{suffix}").unlink()
        shutil.copy(backup, target)
    else:
        stack.desk.environment["DATABASE_URL"] = backup


def test_f6_a_restored_journal_finds_its_orders_and_places_none_twice(
    stack: Stack, database: str | None
) -> None:
    before = stack.submit(LOST)
    stack.wait(before, "FILLED")
    stack.desk.token("operator")
    stack.desk.token("viewer")
    stack.desk.stop()
    backup = back_up(stack, database)
    stack.desk.start()
    decision = stack.decision(LOST, valid_for_s=600)
    lost = stack.call("POST", "intents", decision).body["client_order_id"]
    stack.wait(lost, "FILLED")
    resting = stack.submit(LOST, type="limit", price="90")
    stack.wait(resting, "LIVE")
    stack.desk.stop()
    restore(stack, backup, database)
    stack.desk.start()

    # The decision is repeated by a strategy that never heard an answer.
    again = stack.call("POST", "intents", decision)
    assert again.body.get("client_order_id") == lost, again
    stack.wait(lost, "FILLED", within_s=30)
    stack.wait(resting, "LIVE", within_s=30)
    assert (stack.posts(lost), stack.posts(resting)) == (1, 1)
    assert stack.market(LOST)["state"] == "HALTED"
    assert any("not in the journal" in row["message"] for row in stack.alerts(LOST))
    epochs = [row["epoch"] for row in leases(stack)]
    assert epochs[-1] > 1_000_000 > epochs[0]

    # Other markets go on, and a person lets this one go on too.
    quiet = stack.submit(QUIET)
    stack.wait(quiet, "FILLED", within_s=30)
    assert stack.act(LOST, "resume", "orders checked").status == 200
    stack.call("POST", f"intents/{resting}/cancel")
    stack.wait(resting, "CANCELED")
    after = stack.submit(LOST)
    stack.wait(after, "FILLED", within_s=30)
    for name in (before, lost, resting, quiet, after):
        stack.check(name)


def leases(stack: Stack) -> list[dict[str, int]]:
    body = stack.call("GET", "transitions?after=0&limit=500", role="viewer").body
    rows = body["items"] if isinstance(body, dict) else body
    return [row for row in rows if row["event"] == "lease_taken"]


def test_a_decision_from_before_the_restore_is_looked_for_before_it_is_sent(
    stack: Stack, database: str | None
) -> None:
    """The operator says that the journal was restored; nothing at the venue tells so."""
    waiting = stack.decision(LOST, valid_for_s=600)
    stack.desk.manage("restored", "main", "--reason", "disk failure")
    stack.desk.wait(stack.desk.is_ready, "recovered again", 20)
    name = stack.call("POST", "intents", waiting).body["client_order_id"]
    intent = stack.wait(name, "FILLED", within_s=30)
    assert "looked" in [line["event"] for line in intent["transitions"]]
    assert stack.posts(name) == 1
    stack.check(name)
