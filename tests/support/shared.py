"""A desk and a venue that run once for all processes of the tests."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

from tests.support import postgres
from tests.support.desk import Desk
from tests.support.simulator import Simulator

ROLES = ("viewer", "trader", "operator")


def variable(database: str) -> str:
    """The environment variable that tells where the desk on this kind of database is."""
    return f"ORDERDESK_TEST_DESK_{database.upper()}"


@contextmanager
def desks(server_url: str) -> Iterator[Mapping[str, str]]:
    """Start one on each kind of database; gives the variables that tell tests where they are."""
    from tests.stack.conftest import scenarios

    with ExitStack() as stack, ThreadPoolExecutor(2) as pool:
        urls = {"sqlite": None, "postgresql": stack.enter_context(postgres.database(server_url))}
        entered = {kind: scenarios(url) for kind, url in urls.items()}
        started = {kind: pool.submit(entering.__enter__) for kind, entering in entered.items()}
        for kind, entering in entered.items():
            if started[kind].exception() is None:
                stack.push(entering.__exit__)
        yield {variable(kind): _told(*done.result()) for kind, done in started.items()}


def _told(desk: Desk, venue: Simulator) -> str:
    tokens = {role: desk.token(role) for role in ROLES}
    return json.dumps([str(desk.data), desk.url, desk.environment, tokens, venue.url])


def attach(told: str) -> tuple[Desk, Simulator]:
    data, url, environment, tokens, venue_url = json.loads(told)
    return Desk.attached(data, url, environment, tokens), Simulator.attached(venue_url)
