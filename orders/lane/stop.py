"""How a lane learns that it must stop: the supervisor's pipe, and the parent process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

STOP_FD = "ORDERDESK_STOP_FD"
PARENT_EVERY_S = 0.5


class ProcessStop:
    """Stops at the end of file of the stop pipe, or when the parent process has changed.

    Only the supervisor holds the pipe's write end, so its death ends the lanes too. A changed
    parent means that the cluster's own processes are gone and nobody counts this one any more.
    """

    def start(self, loop: asyncio.AbstractEventLoop, stop: Callable[[str], None]) -> None:
        self._loop, self._stop = loop, stop
        self._parent = os.getppid()
        if (text := os.environ.get(STOP_FD)) is not None:
            self._fd = int(text)
            loop.add_reader(self._fd, self._readable)
        loop.call_later(PARENT_EVERY_S, self._check_parent)

    def _readable(self) -> None:
        self._loop.remove_reader(self._fd)
        self._stop("told to stop")

    def _check_parent(self) -> None:
        if os.getppid() != self._parent:
            self._stop("parent process gone")
        else:
            self._loop.call_later(PARENT_EVERY_S, self._check_parent)
