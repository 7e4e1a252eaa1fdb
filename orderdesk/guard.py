"""The child's side of the stop pipe: how a process learns that it must end, and that it does.

The supervisor alone holds the pipe's write end, so end of file means "stop", or that the supervisor
itself is gone. Every process that holds the read end can wait for it.

`python -m orderdesk.guard COMMAND…` runs a management command that knows nothing of this.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
from collections.abc import Callable

STOP_FD = "ORDERDESK_STOP_FD"
LAST_RESORT_S = 10.0  # the supervisor kills earlier, if it is alive


def watch(
    on_stop: Callable[[], None] | None = None, *, last_resort_s: float = LAST_RESORT_S
) -> None:
    """From now on: at end of file call `on_stop`, and kill the whole process group a while later.

    Without a supervisor there is no pipe, and nothing happens.
    """
    if (text := os.environ.get(STOP_FD)) is None:
        return
    threading.Thread(
        target=_wait, args=(int(text), on_stop, last_resort_s), name="guard", daemon=True
    ).start()


def _wait(fd: int, on_stop: Callable[[], None] | None, last_resort_s: float) -> None:
    # A lane's event loop makes the shared pipe non-blocking, for this reader too: so select first.
    while True:
        select.select([fd], [], [])
        with contextlib.suppress(BlockingIOError):
            if not os.read(fd, 1):
                break
    if on_stop is not None:
        on_stop()
    threading.Event().wait(last_resort_s)
    os.killpg(0, signal.SIGKILL)


def is_stopping() -> bool:
    """Whether the supervisor has told this process to stop, or is gone. Nothing is ever written."""
    if (text := os.environ.get(STOP_FD)) is None:
        return False
    return bool(select.select([int(text)], [], [], 0)[0])


def terminate() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    from manage import main

    watch(terminate)
    sys.argv[0] = "manage.py"
    main()
