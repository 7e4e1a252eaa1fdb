"""Watches the two clusters through the database: that lanes run, and that tasks are done."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import structlog
from django.db import DatabaseError, connection
from django.utils import timezone
from django_q.models import OrmQ
from django_q.tasks import async_task

from orderdesk.processes import Child, Phase
from orders.models import Heartbeat, LaneProcess

log = structlog.get_logger(__name__)

LANES, WORK = "lanes", "work"  # the queues, the children and the heartbeat
LOOK_S = 0.25
# A lane that was enqueued gets so long to show itself, and twice as long each time after that: what
# a slow machine has not begun waits in the cluster, whose room is limited.
ENQUEUE_AGAIN_S = 3.0
LANES_START_S = 60.0  # a new cluster's first lanes: a busy machine may need so long
LANES_STUCK_S = 12.0  # lanes that ran and are missing for so long: the cluster hangs
LANE_FROZEN_S = 15.0  # a lane renews its row each half second
BEAT_S = 2.0
BEAT_AGAIN_S = 8.0
WORK_STUCK_S = 20.0  # longer than a task of that queue may take
NO_PROCESS = -1

Restart = Callable[[str, str], None]


@dataclass
class Change:
    """When a value was last seen to change, on our monotonic clock: wall clocks may step."""

    value: Any = None
    at: float = field(default_factory=time.monotonic)

    def see(self, value: Any) -> None:
        if value != self.value:
            self.value, self.at = value, time.monotonic()


class Health(threading.Thread):
    """Enqueues the lanes that are missing and asks for the restart of a cluster that hangs.

    While the database does not answer nothing can be told, so all waiting starts anew after it.
    """

    def __init__(self, lanes: Child, work: Child, *, wanted_lanes: int, restart: Restart) -> None:
        super().__init__(name="health", daemon=True)
        self._lanes, self._work = lanes, work
        self._wanted = wanted_lanes
        self._restart = restart
        self._forget()

    def run(self) -> None:
        while True:
            try:
                self._look()
            except DatabaseError as error:
                log.warning("health_unknown", error=str(error))
                connection.close()
                self._forget()
            time.sleep(LOOK_S)

    def _look(self) -> None:
        if self._lanes.phase is Phase.RUNNING:
            self._look_at_lanes()
        if self._work.phase is Phase.RUNNING:
            self._look_at_work()

    def _forget(self) -> None:
        now = time.monotonic()
        self._seen: dict[int, Change] = {}
        self._killed: set[int] = set()
        self._lanes_full_at = now
        self._enqueue_at, self._again_s = 0.0, ENQUEUE_AGAIN_S
        self._lanes_ran = False
        self._beat = Change()
        self._asked_at = 0.0
        self._cluster = 0

    def _look_at_lanes(self) -> None:
        now = time.monotonic()
        if self._cluster != self._lanes.pid:
            # What the cluster before it had fetched would count as waiting and never run.
            OrmQ.objects.filter(key=LANES).delete()
            self._cluster, self._lanes_ran = self._lanes.pid, False
            self._enqueue_at, self._again_s = 0.0, ENQUEUE_AGAIN_S
        running = self._running_lanes()
        for pid in self._frozen(running, now):
            del running[pid]
        missing = self._wanted - len(running)
        if missing <= 0:
            if self._enqueue_at:
                # Copies that were asked for meanwhile: nobody acknowledges them while lanes run, so
                # they would be fetched again and again, until the cluster is full.
                OrmQ.objects.filter(key=LANES).delete()
            self._lanes_full_at, self._lanes_ran = now, True
            self._enqueue_at, self._again_s = 0.0, ENQUEUE_AGAIN_S
            return
        limit_s = LANES_STUCK_S if self._lanes_ran else LANES_START_S
        if now - max(self._lanes_full_at, self._lanes.started_at) > limit_s:
            self._restart(LANES, f"{missing} of {self._wanted} lanes do not start")
            self._lanes_full_at = now
        waiting = OrmQ.objects.filter(key=LANES, lock__lte=timezone.now()).exists()
        if not waiting and now > self._enqueue_at:
            for _ in range(missing):
                async_task("orders.tasks.lane", cluster=LANES, timeout=-1)
            self._enqueue_at, self._again_s = now + self._again_s, 2 * self._again_s

    def _running_lanes(self) -> dict[int, Any]:
        """Lanes of our own cluster that are alive, by process ID, with their last sign of life.

        A lane is ours if it lives in the cluster's session: process IDs alone may be used again.
        """
        running, gone = {}, []
        for row in LaneProcess.objects.filter(host=socket.gethostname()):
            session = _session(row.pid)
            if session == self._lanes.pid:
                running[row.pid] = row.seen_at
            elif session == NO_PROCESS:
                gone.append(row.pk)
        if gone:
            LaneProcess.objects.filter(pk__in=gone).delete()
        return running

    def _frozen(self, running: Mapping[int, Any], now: float) -> list[int]:
        """Lanes without a sign of life, killed. They may be dead already, and not yet buried."""
        self._seen = {pid: self._seen.get(pid) or Change() for pid in running}
        frozen = []
        for pid, seen_at in running.items():
            self._seen[pid].see(seen_at)
            if now - self._seen[pid].at > LANE_FROZEN_S:
                frozen.append(pid)
                if pid not in self._killed:
                    log.error("lane_frozen", pid=pid)
                    self._killed.add(pid)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self._killed.intersection_update(running)
        return frozen

    def _look_at_work(self) -> None:
        now = time.monotonic()
        beat = Heartbeat.objects.filter(name=WORK).first()
        self._beat.see(beat and beat.at)
        silent_s = now - max(self._beat.at, self._work.started_at)
        if silent_s > WORK_STUCK_S:
            self._restart(WORK, f"no task was done for {silent_s:.0f} s")
            self._beat.at = now
        pause_s = BEAT_S if self._beat.at >= self._asked_at else BEAT_AGAIN_S
        if now - self._asked_at > pause_s:
            async_task("orders.tasks.beat", cluster=WORK, save=False)
            self._asked_at = now


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return NO_PROCESS
