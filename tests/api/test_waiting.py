"""Calls that wait for the journal: ?wait=STATE, and the stream of transitions."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Self

import pytest

from orders.api.cursor import MAX_ID
from orders.api.following import MAX_FOLLOWERS
from tests.api.conftest import decision
from tests.api.web import GRACE_S, Web, web
from tests.support import postgres

WITHIN_S = 30.0

_LANE = """
from orders import journal
from orders.clock import SYSTEM
from orders.journal import Change, Window
from orders.machine import Event
from orders.models import Account, Intent
from tests.support.lane import recovered
account = Account.objects.get(name="main")
hold, _ = journal.take(account.pk, owner="lane-1", at=SYSTEM.now())
recovered(hold)
window = Window(limit=100, at=SYSTEM.now(), offset_ms=0, expiry_ms=3000, timeout_ms=5000)
for intent in journal.claim(hold, window, actor="lane:lane-1").intents:
    changes = [Change(intent.pk, Event.ACCEPTED, columns={"venue_order_id": str(intent.pk)})]
    journal.record(changes, actor="lane:lane-1", at=SYSTEM.now(), hold=hold)
journal.release(hold, clean=True, at=SYSTEM.now())
"""


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Web]:
    """One process for the tests that leave it as it was."""
    with ExitStack() as stack:
        url = None
        if request.param == "postgresql":
            server = request.getfixturevalue("postgres_server")
            url = stack.enter_context(postgres.database(server))
        yield stack.enter_context(web(tmp_path_factory.mktemp("web"), url))


@pytest.fixture
def own(database: str | None, tmp_path: Path) -> Iterator[Web]:
    """One for this test alone."""
    with web(tmp_path, database) as process:
        yield process


def submit(served: Web, **changes: Any) -> str:
    answer = served.call("POST", "/api/v1/intents", decision(**changes))
    assert answer.status == 201, answer.body
    return str(answer.json()["client_order_id"])


def test_a_wait_ends_when_another_process_moves_the_intent(served: Web) -> None:
    name = submit(served)
    lane = threading.Thread(target=served.run, args=[_LANE])
    lane.start()
    started = time.monotonic()
    answer = served.call("GET", f"/api/v1/intents/{name}?wait=ACKED&timeout_s=60")
    assert time.monotonic() - started < 50  # the commit woke it, not the end of its time
    lane.join()
    assert (answer.status, answer.json()["state"]) == (200, "ACKED")
    assert answer.json()["transitions"][-1]["event"] == "accepted"


def test_a_wait_answers_at_once_where_the_state_was_passed(served: Web) -> None:
    name = submit(served)
    served.call("POST", f"/api/v1/intents/{name}/cancel")
    for state in ("ACKED", "FILLED", "INTENT"):
        started = time.monotonic()
        answer = served.call("GET", f"/api/v1/intents/{name}?wait={state}&timeout_s=30")
        assert answer.json()["state"] == "CANCELED"
        assert time.monotonic() - started < 5


def test_a_wait_that_is_over_answers_with_the_intent_as_it_is(served: Web) -> None:
    name = submit(served)
    started = time.monotonic()
    answer = served.call("GET", f"/api/v1/intents/{name}?wait=FILLED&timeout_s=0.3")
    assert (answer.status, answer.json()["state"]) == (200, "INTENT")
    assert 0.3 <= time.monotonic() - started < 5
    for wrong in ("wait=GONE", "wait=ACKED&timeout_s=61", "wait=ACKED&timeout_s=nan"):
        answer = served.call("GET", f"/api/v1/intents/{name}?{wrong}")
        assert (answer.status, answer.json()["code"]) == (422, "invalid")


class Stream:
    """One `text/event-stream`; events come as (id, data)."""

    def __init__(self, served: Web, after: int = 0, token: str = "", **headers: str) -> None:
        self._link = served.connect(WITHIN_S)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self._link.request(
            "GET",
            f"/api/v1/transitions?after={after}",
            headers={
                "Authorization": f"Bearer {token or served.tokens['viewer']}",
                "Accept": "text/event-stream",
                **named,
            },
        )
        self.response = self._link.getresponse()

    def event(self) -> tuple[int, dict[str, Any]]:
        number, data = 0, ""
        while True:
            line = self.response.readline().decode()
            if not line:
                raise EOFError
            if line.startswith("id:"):
                number = int(line[3:])
            elif line.startswith("data:"):
                data = line[5:]
            elif line == "\n" and data:
                return number, json.loads(data)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.response.close()
        self._link.close()


def test_a_stream_tells_what_was_and_what_comes_and_goes_on_where_it_ended(served: Web) -> None:
    after = served.call("GET", "/api/v1/transitions?limit=500").json()["next_after"]
    first = submit(served)
    with Stream(served, after) as stream:
        assert stream.response.headers["Content-Type"] == "text/event-stream"
        number, line = stream.event()
        assert (line["client_order_id"], line["event"], line["id"]) == (first, "submitted", number)
        second = submit(served)
        assert stream.event()[1]["client_order_id"] == second
        served.run(_LANE)
        assert [stream.event()[1]["event"] for _ in range(2)] == ["lease_taken", "recovered"]
        assert stream.event()[1]["event"] == "claimed"
    with Stream(served, Last_Event_ID=str(number)) as again:
        assert again.event()[1]["client_order_id"] == second


def test_a_stream_loses_no_line_that_commits_late(postgres_server: str, tmp_path: Path) -> None:
    """On PostgreSQL; SQLite has one writer at a time, so numbers commit in order there."""
    with postgres.database(postgres_server) as url, web(tmp_path, url) as late:
        late.run(_LATE_FIRST)
        with Stream(late) as stream:
            told = [stream.event() for _ in range(2)]
            assert [line["id"] for _, line in told] == [2, 3]
            assert {number for number, _ in told} == {0}  # a reconnect starts before the gap
            late.run(_LATE_SECOND)
            number, line = stream.event()
            assert (line["id"], number) == (1, 3)


_LINE = """
import uuid
from orders.clock import SYSTEM
from orders.journal import writing
from orders.models import Account, Transition
def write(number):
    with writing():
        Transition.objects.create(
            pk=number, at=SYSTEM.now(), subject="account", account=Account.objects.get(name="main"),
            event="recovered", actor="lane:1", act_id=uuid.uuid4(),
        )
"""
_LATE_FIRST = f"{_LINE}\nwrite(2); write(3)"
_LATE_SECOND = f"{_LINE}\nwrite(1)"


def test_a_server_that_stops_ends_its_streams_and_waits(own: Web) -> None:
    name = submit(own)
    with Stream(own) as stream, closing(own.connect()) as waiting:
        stream.event()
        waiting.request(
            "GET",
            f"/api/v1/intents/{name}?wait=FILLED&timeout_s=60",
            headers={"Authorization": f"Bearer {own.tokens['viewer']}"},
        )
        assert own.stop() < GRACE_S + 3
        with pytest.raises((EOFError, http.client.IncompleteRead, ConnectionError)):
            stream.event()


def test_clients_that_leave_free_their_places(served: Web) -> None:
    submit(served)
    for _ in range(MAX_FOLLOWERS + 20):
        with Stream(served) as stream:
            assert stream.response.status == 200
            stream.event()


def test_a_revoked_token_ends_its_stream(served: Web) -> None:
    made = "from orders import tokens; from orders.roles import Role"
    token = served.run(f"{made}; print(tokens.create('brief', Role.VIEWER))").strip()
    with Stream(served, after=MAX_ID, token=token) as stream:
        assert stream.response.status == 200
        served.run("from orders import tokens; tokens.revoke('brief')")
        with pytest.raises(EOFError):
            stream.event()
