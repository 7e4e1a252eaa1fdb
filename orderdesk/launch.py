"""Prepares a desk and runs it: what `manage.py desk` does."""

from __future__ import annotations

import errno
import fcntl
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.core.management import call_command
from django.db import DatabaseError, connection

from orderdesk import environment, static_files
from orderdesk.account_file import AccountFileError, load
from orderdesk.health import LANES, WORK, Health
from orderdesk.processes import Spec
from orderdesk.supervisor import Supervisor
from orders import accounts
from venues.gateway import VenueSettings

BACKLOG = 1024
DEMO_MARK = "demo/made-by-demo"  # in the data folder: its journal was made by the demo
WEB_SILENT_S = 15.0
WEB_KILL_AFTER_S = 6.0

Say = Callable[[str], object]


class LaunchError(Exception):
    """The desk cannot start; the text says why and what to do."""


def desk(say: Say) -> None:
    """Start everything and return when it has stopped. Raises LaunchError before anything runs."""
    with _listen() as listener, _embedded_journal():
        host, port = listener.getsockname()[:2]
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        extra: Sequence[Spec] = ()
        if settings.ORDERDESK_DEMO:
            from orderdesk.demo.setup import Demo

            demo = Demo.prepare()
            extra = demo.specs
        else:
            _refuse_demo()
        venues = _accounts()
        _migrate(venues)
        static_files.collect()
        if settings.ORDERDESK_DEMO:
            say(demo.invitation(address))
        else:
            say(f"orderdesk runs at {address}")
        _run([*extra, *specs(listener.fileno())])


def specs(listen_fd: int) -> list[Spec]:
    """The desk's own processes."""
    python = [sys.executable, str(settings.BASE_DIR / "manage.py")]
    webs = [
        Spec(
            "web" if number == 0 else f"web-{number + 1}",
            [*python, "desk_web"],
            {"ORDERDESK_DB_POOL": "1"},
            kill_after_s=WEB_KILL_AFTER_S,
            pulse_within_s=WEB_SILENT_S,
            listen_fd=listen_fd,
        )
        for number in range(settings.ORDERDESK_WEBS)
    ]
    clusters = [
        Spec(queue, [*python, "desk_cluster"], {"Q_CLUSTER_NAME": queue}) for queue in (LANES, WORK)
    ]
    return [*webs, *clusters]


def _run(everything: Sequence[Spec]) -> None:
    supervisor = Supervisor(everything)
    Health(
        supervisor.children[LANES],
        supervisor.children[WORK],
        wanted_lanes=settings.ORDERDESK_LANES,
        restart=supervisor.restart,
    ).start()
    supervisor.run()


def _listen() -> socket.socket:
    """Bind first: a port that is taken shows at once, and no web restart loses a connection."""
    host, port = settings.ORDERDESK_BIND, settings.ORDERDESK_PORT
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise LaunchError(
                f"port {port} is in use; stop what uses it, or set ORDERDESK_PORT to another"
            ) from error
        raise LaunchError(
            f"cannot listen on {host}, port {port}: {error.strerror}; "
            "ORDERDESK_BIND and ORDERDESK_PORT say where"
        ) from error


@contextmanager
def _embedded_journal() -> Iterator[None]:
    """The embedded database is one desk's alone; the lock goes with the process, however it ends.

    Desks that share a PostgreSQL database may run side by side.
    """
    if connection.vendor != "sqlite" or settings.ORDERDESK_DEMO:  # a demo has a lock of its own
        yield
        return
    path = Path(f"{settings.DATABASES['default']['NAME']}.desk-lock")
    try:
        lock = path.open("w")
    except OSError as error:
        raise LaunchError(
            f"cannot write {path}: {error.strerror}; set ORDERDESK_DATA to a folder that can be "
            "written"
        ) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LaunchError(
                f"another desk uses {path.parent}; stop it, or set ORDERDESK_DATA to another folder"
            ) from None
        yield


def _refuse_demo() -> None:
    """A journal of simulated orders must not become a real one."""
    mark = settings.ORDERDESK_DATA / DEMO_MARK
    embedded = settings.ORDERDESK_DATA / "db.sqlite3"
    if mark.exists() and embedded.exists() and not environment.is_set("DATABASE_URL"):
        raise LaunchError(
            f"{settings.ORDERDESK_DATA} holds a demo's journal; set ORDERDESK_DATA to another "
            f"folder for a real desk, or remove {embedded} and {mark}"
        )


def _accounts() -> dict[str, VenueSettings]:
    try:
        return load(settings.ORDERDESK_CONFIG)
    except AccountFileError as error:
        raise LaunchError(str(error)) from error


def _migrate(venues: Mapping[str, VenueSettings]) -> None:
    """Bring the database to the present, and the accounts' rows to what the file says."""
    try:
        call_command("migrate", interactive=False, verbosity=0)
        accounts.sync(venues)
    except DatabaseError as error:
        variable = "DATABASE_URL" if environment.is_set("DATABASE_URL") else "ORDERDESK_DATA"
        raise LaunchError(f"the database does not open ({variable}): {error}") from error
    finally:
        connection.close()
