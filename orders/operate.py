"""What people do. Each act checks, changes and journals in one transaction.

`actor` is "user:NAME" or "token:NAME". Every act takes a reason, which the journal keeps.
"""

from __future__ import annotations

from orders import journal
from orders.clock import SYSTEM
from orders.journal import Change, Halt, RefusedError
from orders.machine import TERMINAL, Event, Note, State
from orders.models import Account, Alert, Intent, Market

MAX_REASON = 2000


class ReasonError(ValueError):
    """The reason or note is missing or too long."""


def halt(market_id: int, *, actor: str, reason: str) -> Market:
    """Stop placing in a market. Open orders stay; what waits is denied."""
    text = f"{_reason(reason)} (by {actor})"
    return journal.halt(Halt(market_id, text), actor=actor, at=SYSTEM.now())


def resume(market_id: int, *, actor: str, reason: str) -> Market:
    """Let a halted market place again. Raises RefusedError while anything is unresolved there."""
    return journal.resume(market_id, actor=actor, reason=_reason(reason), at=SYSTEM.now())


def reconcile(market_id: int, *, actor: str, reason: str = "") -> Market:
    """Have the lane look at everything unresolved in a market now."""
    return journal.request_look(market_id, actor=actor, reason=reason[:MAX_REASON], at=SYSTEM.now())


def acknowledge(alert_id: int, *, actor: str, note: str) -> Alert:
    """Say that somebody looks after an alert. It stays until the facts or a person resolve it."""
    return journal.acknowledge(alert_id, actor=actor, note=_reason(note), at=SYSTEM.now())


def cancel(intent_id: int, *, actor: str, reason: str = "") -> Intent:
    """Ask for a cancel, in any state. Asking again, or after the end, changes nothing.

    Nothing at the venue yet: canceled at once. Else the lane sends it, as often as it takes.
    """
    intent = Intent.objects.get(pk=intent_id)
    if State(intent.state) in TERMINAL or intent.cancel_requested_at is not None:
        return intent
    at = SYSTEM.now()
    columns = {"cancel_requested_at": at, "cancel_requested_by": actor}
    text = reason[:MAX_REASON] or f"cancel asked by {actor}"
    withdraw = Change(
        intent_id,
        Event.WITHDRAWN,
        expect=frozenset({State.INTENT}),
        reason=text,
        columns=columns,
    )
    ask = Change(
        intent_id,
        Note.CANCEL_REQUESTED,
        expect=frozenset(State) - TERMINAL,
        reason=text,
        columns=columns,
    )
    return journal.record([withdraw, ask], actor=actor, at=at)[-1].intent


def restored(account_id: int, *, actor: str, reason: str) -> Account:
    """Say that the journal came from a backup: recover, wait, look before every first send."""
    return journal.mark_restored(account_id, actor=actor, at=SYSTEM.now(), reason=_reason(reason))


def _reason(text: str) -> str:
    text = text.strip()
    if not text:
        raise ReasonError("say why: the reason is kept in the journal")
    if len(text) > MAX_REASON:
        raise ReasonError(f"at most {MAX_REASON} characters, got {len(text)}")
    return text


__all__ = [
    "ReasonError",
    "RefusedError",
    "acknowledge",
    "cancel",
    "halt",
    "reconcile",
    "restored",
    "resume",
]
