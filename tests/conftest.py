"""What all tests share: the databases, and a journal that can be emptied between tests."""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.support import postgres
from tests.support.desk import Desk


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The address of a PostgreSQL server, started if none is running for the tests yet."""
    with postgres.server() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> Iterator[str | None]:
    """DATABASE_URL for a whole stack: a new PostgreSQL database, or None for the embedded one."""
    with ExitStack() as stack:
        if request.param == "sqlite":
            yield None
        else:
            yield stack.enter_context(postgres.database(request.getfixturevalue("postgres_server")))


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Lets a test empty the tables: without the journal's triggers, and then as migrated."""
    from django.contrib.auth.models import Group
    from django.db import connection

    from orders import append_only
    from orders.models import Desk

    operations: Any = type(connection.ops)
    flush = operations.execute_sql_flush
    with django_db_blocker.unblock():
        seed = [*Group.objects.all(), *Desk.objects.all()]

    def flush_journal(self: Any, statements: list[str]) -> None:
        append_only.uninstall(connection)
        try:
            flush(self, statements)
        finally:
            append_only.install(connection)
        for row in seed:
            row.save(force_insert=True)

    operations.execute_sql_flush = flush_journal
    try:
        yield
    finally:
        operations.execute_sql_flush = flush


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failure shows what the desks that run have logged."""
    report = yield
    if report.failed:
        report.sections.extend((f"log of {desk.url}", desk.told()) for desk in Desk.running)
    return report


def pytest_unconfigure() -> None:
    shutil.rmtree(os.environ["ORDERDESK_DATA"], ignore_errors=True)
