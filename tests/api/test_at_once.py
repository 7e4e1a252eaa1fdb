"""One decision, many senders at once: one intent, and the same answer for all."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.api.conftest import decision
from tests.api.web import ROOT, Answer, Web, desk, run, web

SENDERS = 50
PROCESSES = 10

_COUNT = """
from orders.models import Intent, Transition
print(Intent.objects.count(), Transition.objects.filter(subject="intent").count())
"""

# Ten of these run at once, with five threads and connections each. All wait at a gate: a pipe that
# the test closes when every process has said that it is ready.
_SUBMIT = """
import json, sys, threading
from datetime import datetime
import django
django.setup()
from django.db import connection, connections
from orders.intake import Decision, submit
wanted = Decision(
    account="main", strategy="breakout", symbol="BTC/USDT", side="buy", type="limit",
    quantity="0.25", price="61250.10", decided_at=datetime.fromisoformat(sys.argv[1]),
)
gate = threading.Barrier(6)
answers = []
def send():
    connection.ensure_connection()
    gate.wait()
    intent = submit(wanted)
    at = intent.created_at.isoformat()
    answers.append([intent.pk, intent.client_order_id, intent.admitted_as, at])
    connections.close_all()
threads = [threading.Thread(target=send) for _ in range(5)]
for thread in threads:
    thread.start()
print("ready", flush=True)
sys.stdin.read()
gate.wait()
for thread in threads:
    thread.join()
print(json.dumps(answers))
"""


@pytest.fixture
def served(database: str | None, tmp_path: Path) -> Iterator[Web]:
    with web(tmp_path, database) as process:
        yield process


def test_fifty_connections_with_one_decision_get_fifty_equal_answers(served: Web) -> None:
    wanted = decision(params={"zeta": 1, "alpha": 2})
    gate = threading.Barrier(SENDERS)

    def send(_: int) -> Answer:
        link = served.connect()  # closed by the call
        link.connect()
        gate.wait()
        return served.call("POST", "/api/v1/intents", wanted, connection=link)

    with ThreadPoolExecutor(SENDERS) as pool:
        answers = list(pool.map(send, range(SENDERS)))
    assert {(answer.status, answer.body) for answer in answers} == {(201, answers[0].body)}
    replayed = [answer for answer in answers if "idempotent-replayed" in answer.headers]
    assert len(replayed) == SENDERS - 1
    assert served.run(_COUNT).split() == ["1", "1"]


def test_fifty_submits_from_ten_processes_make_one_intent(
    database: str | None, tmp_path: Path
) -> None:
    environment = desk(tmp_path, database)
    run(environment, 'from tests.api.conftest import add_market; add_market("main", "BTC/USDT")')
    command = [sys.executable, "-c", _SUBMIT, decision()["decided_at"]]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    answers: list[list[object]] = []
    with ExitStack() as stack:
        senders = [
            stack.enter_context(subprocess.Popen(command, cwd=ROOT, env=environment, **pipes))
            for _ in range(PROCESSES)
        ]
        for sender in senders:
            assert sender.stdout
            assert sender.stdout.readline() == "ready\n"
        for sender in senders:
            assert sender.stdin
            sender.stdin.close()
        for sender in senders:
            assert sender.stdout
            answers += json.loads(sender.stdout.read())
            assert sender.wait(60) == 0
    assert len(answers) == SENDERS
    assert all(answer == answers[0] for answer in answers)
    assert run(environment, _COUNT).split() == ["1", "1"]
