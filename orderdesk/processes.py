"""One child process of the supervisor, in a session of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

import structlog

from orderdesk.guard import STOP_FD

log = structlog.get_logger(__name__)

PULSE_FD = "ORDERDESK_PULSE_FD"
LISTEN_FD = "ORDERDESK_LISTEN_FD"
STANDARD_ERROR = 2
KILL_AFTER_S = 7.0  # so that the whole desk is gone within 10
KILL_AGAIN_S = 1.0
BACKOFF_S = (0.1, 10.0)  # the first pause before a restart, and the longest
HEALTHY_S = 30.0  # a child that lived so long starts again with the first pause


class Phase(Enum):
    RUNNING = "running"
    STOPPING = "stopping"  # told to end; killed when its time is over
    DOWN = "down"  # ended; starts again after a pause, unless the desk stops


@dataclass(frozen=True)
class Spec:
    """What to run. `argv` is the whole command line."""

    name: str
    argv: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    kill_after_s: float = KILL_AFTER_S
    pulse_within_s: float | None = None  # how long it may be silent on its pulse pipe
    listen_fd: int | None = None
    stops_last: bool = False


class Child:
    """Starts, watches, stops and restarts one process and whatever it has started itself."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.name = spec.name
        self.phase = Phase.DOWN
        self.started_at = 0.0  # monotonic seconds, as all instants here
        self._process: subprocess.Popen[bytes] | None = None
        self._stop_fd: int | None = None  # the stop pipe's write end
        self._pulse_fd: int | None = None
        self._pulse_at = 0.0
        self._kill_at = 0.0
        self._start_at = 0.0
        self._backoff_s = BACKOFF_S[0]

    @property
    def pid(self) -> int:
        """Of the leader, which is also the session's and the process group's; 0 while down."""
        return self._process.pid if self._process is not None else 0

    def start(self) -> None:
        stop_read, self._stop_fd = os.pipe()
        pulse_read, pulse_write = os.pipe()
        passed = [stop_read, pulse_write]
        environment = {
            **os.environ,
            **self.spec.environment,
            STOP_FD: str(stop_read),
            PULSE_FD: str(pulse_write),
        }
        if self.spec.listen_fd is not None:
            passed.append(self.spec.listen_fd)
            environment[LISTEN_FD] = str(self.spec.listen_fd)
        try:
            self._process = subprocess.Popen(
                self.spec.argv,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=STANDARD_ERROR,  # standard output is the desk's own words alone
                pass_fds=passed,
                start_new_session=True,
            )
        finally:
            os.close(stop_read)
            os.close(pulse_write)
        os.set_blocking(pulse_read, False)
        self._pulse_fd = pulse_read
        self.started_at = self._pulse_at = time.monotonic()
        self.phase = Phase.RUNNING
        log.info("child_started", child=self.name, pid=self.pid)

    def stop(self) -> None:
        """Tell it to end: by the pipe, which all its processes see, then its leader by TERM."""
        if self.phase is not Phase.RUNNING:
            return
        self._close_stop_pipe()
        self._signal_leader(signal.SIGTERM)
        self.phase = Phase.STOPPING
        self._kill_at = time.monotonic() + self.spec.kill_after_s

    def tick(self, *, restart: bool) -> None:
        """See what became of it, and do what is due."""
        now = time.monotonic()
        if self.phase is Phase.DOWN:
            if restart and now >= self._start_at:
                self.start()
            return
        if self._leader_ended():
            self._clean_up(now)
        elif self.phase is Phase.STOPPING and now >= self._kill_at:
            log.warning("child_killed", child=self.name, pid=self.pid)
            self.kill()
            self._kill_at = now + KILL_AGAIN_S
        elif self.phase is Phase.RUNNING and self._silent(now):
            log.error("child_silent", child=self.name, pid=self.pid)
            self.stop()

    def kill(self) -> None:
        """Kill the whole session at once."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def _signal_leader(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def _leader_ended(self) -> bool:
        # Without reaping it: while it is a zombie nothing else can get its number, so that the
        # kill of its group cannot hit a stranger.
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self.pid, flags) is not None

    def _clean_up(self, now: float) -> None:
        self.kill()
        assert self._process is not None
        status = self._process.wait()
        level = log.info if self.phase is Phase.STOPPING else log.error
        level("child_ended", child=self.name, pid=self._process.pid, status=status)
        self._process = None
        self._close_stop_pipe()
        if self._pulse_fd is not None:
            os.close(self._pulse_fd)
            self._pulse_fd = None
        if now - self.started_at >= HEALTHY_S:
            self._backoff_s = BACKOFF_S[0]
        self._start_at = now + self._backoff_s
        self._backoff_s = min(2 * self._backoff_s, BACKOFF_S[1])
        self.phase = Phase.DOWN

    def _close_stop_pipe(self) -> None:
        if self._stop_fd is not None:
            os.close(self._stop_fd)
            self._stop_fd = None

    def _silent(self, now: float) -> bool:
        """Whether a child that must show its pulse has not done so for too long."""
        if self._pulse_fd is None:
            return False
        with contextlib.suppress(BlockingIOError):
            if os.read(self._pulse_fd, 4096):
                self._pulse_at = now
        limit_s = self.spec.pulse_within_s
        return limit_s is not None and now - self._pulse_at > limit_s
