"""A whole desk in processes of its own, for the tests that go through everything."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self
from urllib.error import HTTPError
from urllib.request import urlopen

import psycopg

ROOT = Path(__file__).resolve().parents[2]
READY_WITHIN_S = 60.0
STOPS_WITHIN_S = 10.0
LOG_SHOWN = 200  # lines of the log in a failure
SECRETS = {"TEST_VENUE_KEY": "test-key", "TEST_VENUE_SECRET": "simulator-secret"}
PYTHON = sys.executable


class DeskError(AssertionError):
    """The desk did not do what a test waited for; shows the end of its log."""


class Desk:
    """Runs `manage.py desk` against a venue; use as a context manager.

    `accounts` maps names to symbols. `options` go into every account's table as they are, for
    example timeout_ms=1500; `each` adds to the table of the account of that name. Without
    `database_url` the journal is a file in a folder of its own, which goes with the desk.
    `environment` is added to the desk's.
    """

    running: ClassVar[list[Desk]] = []  # for the reports of failures

    def __init__(
        self,
        venue_url: str,
        *,
        database_url: str | None = None,
        accounts: Mapping[str, Sequence[str]] | None = None,
        environment: Mapping[str, str] | None = None,
        ready: bool = True,
        each: Mapping[str, Mapping[str, Any]] | None = None,
        **options: Any,
    ) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="orderdesk-desk-")
        self.data = Path(self._folder.name)
        self.url = ""
        self.process: subprocess.Popen[str] | None = None
        self._await_ready = ready
        self._tokens: dict[str, str] = {}
        config = self.data / "orderdesk.toml"
        config.write_text(
            _account_file(
                accounts or {"main": ["BTC/USDT", "ETH/USDT"]}, venue_url, options, each or {}
            )
        )
        self.environment = {
            **{
                k: v for k, v in os.environ.items() if not k.startswith(("ORDERDESK_", "Q_CLUSTER"))
            },
            **SECRETS,
            "ORDERDESK_DATA": str(self.data),
            "ORDERDESK_CONFIG": str(config),
            "ORDERDESK_PORT": "0",
            "DJANGO_SETTINGS_MODULE": "orderdesk.settings",
            **({"DATABASE_URL": database_url} if database_url else {}),
            **(environment or {}),
        }
        if not database_url:
            self.environment.pop("DATABASE_URL", None)

    @classmethod
    def attached(
        cls, data: str, url: str, environment: dict[str, str], tokens: dict[str, str]
    ) -> Self:
        """One that runs already; whoever started it stops it."""
        self = cls.__new__(cls)
        self.data, self.url, self.process = Path(data), url, None
        self.environment, self._tokens = environment, tokens
        return self

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self._end()
            raise
        Desk.running.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        Desk.running.remove(self)
        self._end()

    def start(self) -> None:
        """Start it, again if need be, on the same data and port; returns when it is ready."""
        if self.process is not None and self.process.stdout is not None:
            self.process.stdout.close()
        with self._log_path.open("a") as log:
            self.process = subprocess.Popen(
                [PYTHON, "manage.py", "desk"],
                cwd=ROOT,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if "http://" not in line:
            raise self.error(f"the desk did not start: {line!r}")
        self.url = line.split()[-1]
        self.environment["ORDERDESK_PORT"] = self.url.rpartition(":")[2]
        if self._await_ready:
            self.wait(self.is_ready, "the desk is ready", READY_WITHIN_S)

    def is_ready(self) -> bool:
        """Whether /readyz says that it recovered and may place."""
        try:
            with urlopen(f"{self.url}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)
        except HTTPError as error:
            error.close()
            return False
        except OSError:
            return False

    def stop(self) -> float:
        """End it in order, by SIGTERM; returns the seconds that it took."""
        assert self.process is not None
        started = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOPS_WITHIN_S + 5)
        except subprocess.TimeoutExpired:
            raise self.error(f"the desk still runs {STOPS_WITHIN_S + 5:.0f} s after TERM") from None
        return time.monotonic() - started

    def kill(self) -> None:
        """End the supervisor alone, by SIGKILL."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def kill_everything(self) -> None:
        """End all its processes at once by SIGKILL, as when the machine goes down."""
        assert self.process is not None
        for pid in {self.process.pid, *self.processes()}:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def manage(self, *arguments: str) -> str:
        """Run a management command on the desk's data; returns what it printed."""
        done = subprocess.run(
            [PYTHON, "manage.py", *arguments],
            cwd=ROOT,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise self.error(f"manage.py {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout.strip()

    def token(self, role: str = "trader") -> str:
        """An API token of a role, made once."""
        if role not in self._tokens:
            self._tokens[role] = self.manage("api_token", "create", f"test-{role}", "--role", role)
        return self._tokens[role]

    def python(self, code: str) -> Any:
        """Run Python inside the desk's settings, in a process of its own.

        The code leaves its result, which must be JSON, in `result`.
        """
        script = f"import json\n{code}\nprint('RESULT', json.dumps(result, default=str))"
        output = self.manage("shell", "--verbosity", "0", "-c", script)
        return json.loads(output.rpartition("RESULT ")[2])

    def processes(self) -> dict[int, str]:
        """Everything that runs on this desk's data: process ID and command line."""
        return processes_with(f"ORDERDESK_DATA={self.data}")

    def pid(self, child: str) -> int:
        """The leader of a child, "web", "lanes" or "work", as the supervisor last started it."""
        started = [
            event["pid"]
            for event in self.events("child_started")
            if event["child"] == child and alive(event["pid"])
        ]
        return int(started[-1]) if started else 0

    def workers(self, child: str) -> list[int]:
        """The worker processes of a cluster: the children of its sentinel, with its helpers."""
        leader = self.pid(child)
        return [pid for pid in self.processes() if leader and pid != leader and _sid(pid) == leader]

    def lane_pids(self) -> list[int]:
        """The processes that run a lane now, the holder of most leases first."""
        rows = self.sql(
            "SELECT pid, (SELECT COUNT(*) FROM orders_lease"
            " WHERE orders_lease.owner = orders_laneprocess.owner) AS held"
            " FROM orders_laneprocess ORDER BY held DESC, id"
        )
        return [pid for pid, _ in rows if alive(pid)]

    def holder(self, account: str = "main") -> str:
        """Who holds an account's lease and recovered it; "" for nobody."""
        rows = self.sql(
            "SELECT owner FROM orders_lease JOIN orders_account ON account_id = orders_account.id"
            f" WHERE name = '{account}' AND recovered_at IS NOT NULL"
        )
        return str(rows[0][0]) if rows else ""

    def sql(self, query: str) -> list[tuple[Any, ...]]:
        """Read the desk's database directly, which is much faster than python()."""
        if url := self.environment.get("DATABASE_URL"):
            with psycopg.connect(url) as connection:
                return connection.execute(query).fetchall()
        path = f"file:{self.data / 'db.sqlite3'}?mode=ro"
        with contextlib.closing(sqlite3.connect(path, uri=True, timeout=20)) as embedded:
            return embedded.execute(query).fetchall()

    def kill_worker(self) -> int:
        """kill -9 the lane that holds the lease; returns its process ID."""
        pid = self.lane_pids()[0]
        os.kill(pid, signal.SIGKILL)
        return pid

    def log(self) -> str:
        """Standard error of all processes since the first start."""
        return self._log_path.read_text(errors="replace") if self._log_path.exists() else ""

    def events(self, name: str) -> list[dict[str, Any]]:
        """The log's lines of one event, parsed."""
        found = []
        for line in self.log().splitlines():
            if f'"event": "{name}"' in line:
                with contextlib.suppress(ValueError):
                    found.append(json.loads(line))
        return found

    def wait(self, state: Callable[[], object], what: str, within_s: float) -> Any:
        """Wait until `state()` is true and return it. Raises DeskError, naming `what`."""
        deadline = time.monotonic() + within_s
        while not (value := state()):
            if time.monotonic() > deadline:
                raise self.error(f"not within {within_s:.0f} s: {what}")
            time.sleep(0.05)
        return value

    def error(self, message: str) -> DeskError:
        return DeskError(message if self in Desk.running else f"{message}\n{self.told()}")

    @property
    def _log_path(self) -> Path:
        return self.data / "desk.log"

    def told(self) -> str:
        """The end of the log, for people."""
        lines = self.log().splitlines()[-LOG_SHOWN:]
        return "\n".join(["--- the end of the desk's log ---", *lines])

    def _end(self) -> None:
        """Leave nothing behind, whatever state the test left it in."""
        if self.process is not None:
            if self.process.poll() is None:
                self.process.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(STOPS_WITHIN_S + 2)
                self.process.kill()
            self.process.wait()
            if self.process.stdout is not None:
                self.process.stdout.close()
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._folder.cleanup()


def processes_with(variable: str) -> dict[int, str]:
    """Live processes whose environment has NAME=VALUE: process ID and command line."""
    found = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            if variable.encode() in (folder / "environ").read_bytes().split(b"\0"):
                words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                found[int(folder.name)] = words.strip()
    return found


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def _sid(pid: int) -> int:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return 0


def _account_file(
    accounts: Mapping[str, Sequence[str]],
    venue_url: str,
    options: Mapping[str, Any],
    each: Mapping[str, Mapping[str, Any]],
) -> str:
    fields = {
        "exchange": "binance",
        "api_key": "env:TEST_VENUE_KEY",
        "secret": "env:TEST_VENUE_SECRET",
        "base_url": venue_url,
        **options,
    }
    tables = []
    for name, symbols in accounts.items():
        table = {**fields, **each.get(name, {}), "symbols": list(symbols)}
        # JSON's texts, numbers, lists and truth values are TOML's too.
        lines = [f"{field} = {json.dumps(value)}" for field, value in table.items()]
        tables.append("\n".join([f"[accounts.{name}]", *lines]))
    return "\n\n".join(tables) + "\n"
