"""A web process of the desk, as uvicorn runs it, on a database of its own."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
STARTS_WITHIN_S = 30.0
GRACE_S = 2

_SET_UP = """
from orders import tokens
from orders.roles import Role
from tests.api.conftest import add_market
add_market("main", "BTC/USDT")
add_market("main", "ETH/USDT")
for role in Role:
    print(tokens.create(role.value, role))
"""


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Web:
    """Tokens are named by their role."""

    port: int
    environment: dict[str, str]
    tokens: dict[str, str]
    process: subprocess.Popen[bytes]

    def connect(self, timeout_s: float = 60) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout_s)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        role: str = "operator",
        headers: dict[str, str] | None = None,
        connection: http.client.HTTPConnection | None = None,
    ) -> Answer:
        named = {"Authorization": f"Bearer {self.tokens[role]}", **(headers or {})}
        with closing(connection or self.connect()) as link:
            link.request(method, path, None if body is None else json.dumps(body), named)
            response = link.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read())

    def run(self, code: str) -> str:
        """Python with the desk's models, in a process of its own, on the same database."""
        return run(self.environment, code)

    def stop(self) -> float:
        """Ask it to stop; returns the seconds that it took."""
        started = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(20)
        return time.monotonic() - started


def run(environment: dict[str, str], code: str) -> str:
    script = f"import django; django.setup()\n{code}"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def web(data: Path, database_url: str | None) -> Iterator[Web]:
    environment = desk(data, database_url)
    names = ("viewer", "trader", "operator", "administrator")
    tokens = dict(zip(names, run(environment, _SET_UP).split(), strict=True))
    with socket.socket() as listener, (data / "web.log").open("wb") as log:
        listener.bind(("127.0.0.1", 0))
        listener.listen(128)
        port = listener.getsockname()[1]
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "uvicorn", "orderdesk.asgi:application"),
                *("--fd", str(listener.fileno()), "--timeout-graceful-shutdown", str(GRACE_S)),
                *("--log-level", "warning"),
            ],
            cwd=ROOT,
            env=environment,
            pass_fds=[listener.fileno()],
            stderr=log,
        )
    try:
        served = Web(port, environment, tokens, process)
        _wait_until_served(served, data / "web.log")
        yield served
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(20)


def desk(data: Path, database_url: str | None) -> dict[str, str]:
    """The environment of a desk whose database is ready."""
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "orderdesk.settings",
        "ORDERDESK_DATA": str(data),
        "ORDERDESK_DEBUG": "1",  # static files from where they lie
    }
    environment.pop("DATABASE_URL", None)
    if database_url:
        environment["DATABASE_URL"] = database_url
    command = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    return environment


def _wait_until_served(served: Web, log: Path) -> None:
    deadline = time.monotonic() + STARTS_WITHIN_S
    while True:
        try:
            with closing(served.connect(1)) as link:
                link.request("GET", "/healthz")
                assert link.getresponse().status == 200
                return
        except OSError:
            running = served.process.poll() is None
            assert running, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
