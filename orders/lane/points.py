"""Named points at which a test can kill or stop a lane, to show that nothing depends on luck.

A point is reached after each journal write of a lane and around each send. Nothing happens unless
ORDERDESK_POINTS names a folder; there, a file with a point's name arms it once, and its content is
the signal: KILL or STOP.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

from orders.machine import Event, Note

VARIABLE = "ORDERDESK_POINTS"
BEFORE_SEND = "before_send"  # claimed, and the permit taken
AFTER_SEND = "after_send"  # the answer is there, and nothing of it recorded

# The events that a lane records: every point between two of its writes.
AFTER = frozenset(
    {
        Event.CLAIMED, Event.ACCEPTED, Event.REJECTED, Event.NOT_PLACED, Event.NO_ANSWER,
        Event.DUPLICATE, Event.OWNER_LOST, Event.RECONCILE_STARTED, Event.FOUND, Event.ABSENT,
        Event.INCONCLUSIVE, Event.WORKING, Event.FILLED, Event.CANCELED, Event.LOST_SIGHT,
        Event.CONTRADICTED, Note.FILL, Note.LOOKED, Note.EVIDENCE, Note.CANCEL_SENT,
    }
)  # fmt: skip
POINTS = frozenset({BEFORE_SEND, AFTER_SEND, *(event.value for event in AFTER)})


def reach(name: str) -> None:
    """Pass a point. Raises KeyError for one that is not listed: list it, and test it."""
    if name not in POINTS:
        raise KeyError(f"{name!r} is not a listed point")
    folder = os.environ.get(VARIABLE)
    if not folder:
        return
    armed = Path(folder) / name
    try:
        wanted = armed.read_text()
        armed.unlink()
    except FileNotFoundError:
        return
    os.kill(os.getpid(), getattr(signal, f"SIG{wanted.strip()}"))
