"""The only writer of state. Everything here is one transaction, committed and flushed on return.

Locks are taken in one order: lease, markets, intents, alerts. A lane passes its `Hold`, and a
transaction whose lease is lost writes nothing.
"""

from orders.journal.admit import Admission, CollisionError, admit, find
from orders.journal.alerts import (
    AlertDraft,
    AlertGoneError,
    acknowledge,
    raise_alert,
    resolve,
    resolve_topic,
)
from orders.journal.batch import BrokenRuleError, Change
from orders.journal.claim import Claimed, Window, attempt_expiry_ms, claim, to_look_for, waiting
from orders.journal.lease import (
    LEASE_S,
    Hold,
    LeaseLostError,
    fair_share,
    forget_process,
    free_accounts,
    look_over,
    release,
    renew,
    set_limit,
    take,
    take_recovered,
    younger_lane,
)
from orders.journal.markets import (
    Halt,
    RefusedError,
    halt,
    request_look,
    resume,
)
from orders.journal.record import Done, record
from orders.journal.restored import SECOND, Orphan, adopt, clear, mark_restored
from orders.journal.watch import unwatch, watched
from orders.journal.writing import database_now, writing

__all__ = [
    "LEASE_S",
    "SECOND",
    "Admission",
    "AlertDraft",
    "AlertGoneError",
    "BrokenRuleError",
    "Change",
    "Claimed",
    "CollisionError",
    "Done",
    "Halt",
    "Hold",
    "LeaseLostError",
    "Orphan",
    "RefusedError",
    "Window",
    "acknowledge",
    "admit",
    "adopt",
    "attempt_expiry_ms",
    "claim",
    "clear",
    "database_now",
    "fair_share",
    "find",
    "forget_process",
    "free_accounts",
    "halt",
    "look_over",
    "mark_restored",
    "raise_alert",
    "record",
    "release",
    "renew",
    "request_look",
    "resolve",
    "resolve_topic",
    "resume",
    "set_limit",
    "take",
    "take_recovered",
    "to_look_for",
    "unwatch",
    "waiting",
    "watched",
    "writing",
    "younger_lane",
]
