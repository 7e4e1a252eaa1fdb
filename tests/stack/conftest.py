"""One simulator and one desk for all scenarios of a database; each test has a market of its own."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import Message
from itertools import count, cycle
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest

from tests.support import postgres, shared
from tests.support.desk import Desk
from tests.support.simulator import Simulator

TIMEOUT_MS = 1000
EXPIRY_MS = 1500
DOUBT_S = 10
# The account "polled" does without the venue's pushes, so that doubt can be watched.
SYMBOLS = [f"T{number:02}/USDT" for number in range(1, 121)]
ENDS = ("FILLED", "CANCELED", "REJECTED", "DENIED")


@dataclass
class Answer:
    """What the API answered."""

    status: int
    body: Any
    headers: Message  # names in any case


@dataclass
class Stack:
    """A running desk, its venue, and what a test does with them."""

    desk: Desk
    venue: Simulator
    account: str = "main"
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def call(self, method: str, path: str, body: Any = None, *, role: str = "trader") -> Answer:
        headers = {"Authorization": f"Bearer {self.desk.token(role)}"}
        data = None if body is None else json.dumps(body).encode()
        if data is not None:
            headers["Content-Type"] = "application/json"
        request = Request(f"{self.desk.url}/api/v1/{path}", data, headers, method=method)
        try:
            with urlopen(request, timeout=60) as answer:
                return Answer(answer.status, json.load(answer), answer.headers)
        except HTTPError as error:
            with error:
                return Answer(error.code, json.load(error), error.headers)

    def decision(self, symbol: str, **changes: Any) -> dict[str, Any]:
        return {
            "account": self.account,
            "strategy": "scenario",
            "symbol": symbol,
            "side": "buy",
            "type": "market",
            "quantity": "1",
            "decided_at": datetime.now(UTC).isoformat(),
            "key": uuid.uuid4().hex,
            **changes,
        }

    def submit(self, symbol: str, **changes: Any) -> str:
        """Admit a decision; returns its client order ID."""
        answer = self.call("POST", "intents", self.decision(symbol, **changes))
        assert answer.status == 201, answer
        return str(answer.body["client_order_id"])

    def intent(self, name: str) -> dict[str, Any]:
        body: dict[str, Any] = self.call("GET", f"intents/{name}").body
        return body

    def wait(self, name: str, *states: str, within_s: float = 45) -> dict[str, Any]:
        """Wait for one of the states; for an end where none is named."""
        wanted = states or ENDS

        def reached() -> dict[str, Any] | None:
            intent = self.intent(name)
            return intent if intent["state"] in wanted else None

        found: dict[str, Any] = self.desk.wait(reached, f"{name} is in {wanted}", within_s)
        return found

    def states(self, name: str) -> list[str]:
        """The states that the intent went through, each once in a row."""
        path: list[str] = []
        for line in self.intent(name)["transitions"]:
            if not path or path[-1] != line["to_state"]:
                path.append(line["to_state"])
        return path

    def events(self, name: str) -> list[str]:
        return [line["event"] for line in self.intent(name)["transitions"]]

    def posts(self, name: str) -> int:
        """How many create requests for this ID reached the venue."""
        return len(self.venue.ledger(client_order_id=name)["requests"])

    def orders(self, name: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.venue.ledger(client_order_id=name)["orders"]
        return found

    def market(self, symbol: str) -> dict[str, Any]:
        rows = self.call("GET", "markets").body
        rows = rows["items"] if isinstance(rows, dict) else rows
        return next(
            row for row in rows if (row["account"], row["symbol"]) == (self.account, symbol)
        )

    def act(self, symbol: str, verb: str, reason: str = "test") -> Answer:
        path = f"markets/{self.account}/{quote(symbol, safe='')}/{verb}"
        return self.call("POST", path, {"reason": reason}, role="operator")

    def alerts(self, symbol: str) -> list[dict[str, Any]]:
        rows = self.call("GET", "alerts", role="operator").body
        rows = rows["items"] if isinstance(rows, dict) else rows
        return [row for row in rows if row["symbol"] == symbol and row["account"] == self.account]

    def halted(self, symbol: str) -> bool:
        return bool(self.market(symbol)["state"] == "HALTED")

    def resting(self, symbol: str) -> str:
        """Place an order far below the price; returns its name once it is open."""
        name = self.submit(symbol, type="limit", price="90")
        self.wait(name, "LIVE")
        return name

    def check(self, name: str) -> dict[str, Any]:
        """What must hold after every scenario: one order, every execution booked, an end."""
        intent, ledger = self.intent(name), self.venue.ledger(client_order_id=name)
        assert len(ledger["orders"]) <= 1, ledger
        executed = sorted(str(row["trade_id"]) for row in ledger["executions"])
        booked = sorted(str(row["venue_trade_id"]) for row in intent["fills"])
        assert booked == executed, (intent, ledger)
        assert intent["state"] in ENDS, intent
        return intent


@contextmanager
def scenarios(database_url: str | None) -> Iterator[tuple[Desk, Simulator]]:
    """The desk and the venue that the scenarios of one database share."""
    with (
        Simulator() as venue,
        Desk(
            venue.url,
            database_url=database_url,
            accounts={"main": SYMBOLS[:60], "polled": SYMBOLS[60:]},
            timeout_ms=TIMEOUT_MS,
            request_expiry_ms=EXPIRY_MS,
            environment={"ORDERDESK_DOUBT_S": str(DOUBT_S)},
            each={"polled": {"stream": False}},
        ) as desk,
    ):
        yield desk, venue


@contextmanager
def brisk(
    symbols: list[str],
    *,
    database_url: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Stack]:
    """A desk of the test's own, without pushes and with short time-outs, and its venue."""
    with (
        Simulator() as venue,
        Desk(
            venue.url,
            database_url=database_url,
            accounts={"main": symbols},
            timeout_ms=TIMEOUT_MS,
            request_expiry_ms=EXPIRY_MS,
            stream=False,
            environment=environment,
        ) as desk,
    ):
        yield Stack(desk, venue)


@contextmanager
def database_of(request: pytest.FixtureRequest) -> Iterator[str | None]:
    """DATABASE_URL for a fixture's parameter: a new database, or None for the embedded one."""
    if request.param == "sqlite":
        yield None
        return
    with postgres.database(request.getfixturevalue("postgres_server")) as url:
        yield url


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def running(request: pytest.FixtureRequest) -> Iterator[tuple[Desk, Simulator]]:
    """Those that the whole part shares, where `python -m tests` started them; else its own."""
    if found := os.environ.get(shared.variable(request.param)):
        yield shared.attach(found)
        return
    with database_of(request) as url, scenarios(url) as both:
        yield both


@pytest.fixture
def main(running: tuple[Desk, Simulator], symbol: str) -> Iterator[Stack]:
    yield from _stack(running, "main", symbol)


@pytest.fixture
def polled(running: tuple[Desk, Simulator], symbol: str) -> Iterator[Stack]:
    yield from _stack(running, "polled", symbol)


def _stack(running: tuple[Desk, Simulator], account: str, symbol: str) -> Iterator[Stack]:
    desk, venue = running
    stack = Stack(desk, venue, account)
    if stack.halted(symbol):  # as the test before left it
        assert stack.act(symbol, "resume").status == 200
    yield stack
    venue.clear_faults(wire(symbol))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What only uses a market of its own may run beside others on the same desk."""
    for item in items:
        if {"main", "polled"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.shared)


def _mine(symbols: list[str]) -> Iterator[str]:
    """The markets of this worker, over and over: no other test uses them at the same time."""
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    return cycle(symbols[number::workers])


_main, _polled = _mine(SYMBOLS[:60]), _mine(SYMBOLS[60:])


@pytest.fixture
def symbol(request: pytest.FixtureRequest) -> str:
    """A market that no other test uses at the same time."""
    return next(_polled if "polled" in request.fixturenames else _main)


@pytest.fixture
def other(request: pytest.FixtureRequest, symbol: str) -> str:
    """A second one, of the same account."""
    return next(_polled if "polled" in request.fixturenames else _main)


def wire(symbol: str) -> str:
    """The venue's name of a symbol."""
    return symbol.replace("/", "")
