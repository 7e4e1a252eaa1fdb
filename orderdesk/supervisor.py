"""Keeps the desk's processes running, and stops them in order.

Only process handling: what needs the database is done by `orderdesk.health` in a thread of its own,
so that a database that hangs can never keep the desk from stopping.
"""

from __future__ import annotations

import queue
import signal
import threading
import time
from collections.abc import Sequence
from types import FrameType

import structlog

from orderdesk.processes import Child, Phase, Spec

log = structlog.get_logger(__name__)

TICK_S = 0.1
STOP_WITHIN_S = 9.5  # from the signal to the end of the last process


class Supervisor:
    """Runs the children until SIGTERM or SIGINT. `restart` may be called from any thread."""

    def __init__(self, specs: Sequence[Spec]) -> None:
        self.children = {spec.name: Child(spec) for spec in specs}
        self._restarts: queue.SimpleQueue[tuple[str, str]] = queue.SimpleQueue()
        self._stop = threading.Event()

    def restart(self, name: str, reason: str) -> None:
        """End a child in order, or by force after its time, and start it again."""
        self._restarts.put((name, reason))

    def run(self) -> None:
        """Returns when every child is gone."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        try:
            for child in self.children.values():
                child.start()
            while not self._stop.wait(TICK_S):
                self._restart_asked()
                for child in self.children.values():
                    child.tick(restart=True)
        finally:
            self._stop_all()

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self._stop.is_set():
            log.warning("stopping_already", signal=signal.Signals(number).name)
        self._stop.set()

    def _restart_asked(self) -> None:
        while not self._restarts.empty():
            name, reason = self._restarts.get()
            child = self.children[name]
            if child.phase is Phase.RUNNING:
                log.error("child_restarted", child=name, pid=child.pid, reason=reason)
                child.stop()

    def _stop_all(self) -> None:
        log.info("desk_stopping")
        deadline = time.monotonic() + STOP_WITHIN_S
        children = self.children.values()
        self._end([child for child in children if not child.spec.stops_last], deadline)
        self._end([child for child in children if child.spec.stops_last], deadline)
        log.info("desk_stopped")

    def _end(self, children: Sequence[Child], deadline: float) -> None:
        for child in children:
            child.stop()
        while any(child.phase is not Phase.DOWN for child in children):
            if time.monotonic() > deadline:
                for child in children:
                    child.kill()
            for child in children:
                child.tick(restart=False)
            time.sleep(TICK_S / 5)
