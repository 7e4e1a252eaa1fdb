"""Lines of the journal."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from orders.machine import Act
from orders.models import Alert, Intent, Market, Transition


def clean(value: Any) -> Any:
    """Text that every database takes: without NUL and lone surrogates, which a venue may send."""
    if isinstance(value, str):
        return value.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()
    if isinstance(value, Mapping):
        return {clean(name): clean(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean(item) for item in value]
    return value


@dataclass(frozen=True, slots=True)
class Stamp:
    """Who acts, when, and the id that the entries of one act share."""

    actor: str
    at: datetime
    act_id: uuid.UUID

    @classmethod
    def new(cls, actor: str, at: datetime) -> Stamp:
        return cls(actor, at, uuid.uuid4())


def of_intent(
    intent: Intent,
    stamp: Stamp,
    event: str,
    before: str,
    *,
    reason: str = "",
    evidence: Mapping[str, Any] | None = None,
) -> Transition:
    """The entry for the change that made `intent.version` what it is now."""
    return Transition(
        at=stamp.at,
        subject="intent",
        account_id=intent.account_id,
        market_id=intent.market_id,
        intent=intent,
        seq=intent.version,
        event=event,
        from_state=before,
        to_state=intent.state,
        actor=stamp.actor,
        reason=clean(reason),
        evidence=clean(evidence or {}),
        attempt=intent.attempt,
        epoch=intent.epoch,
        act_id=stamp.act_id,
    )


def of_market(
    market: Market, stamp: Stamp, act: Act, before: str, *, reason: str = ""
) -> Transition:
    return Transition(
        at=stamp.at,
        subject="market",
        account_id=market.account_id,
        market=market,
        event=act.value,
        from_state=before,
        to_state=market.state,
        actor=stamp.actor,
        reason=clean(reason),
        act_id=stamp.act_id,
    )


def of_alert(alert: Alert, stamp: Stamp, act: Act, before: str, *, reason: str = "") -> Transition:
    return Transition(
        at=stamp.at,
        subject="alert",
        account_id=alert.account_id,
        market_id=alert.market_id,
        intent_id=alert.intent_id,
        alert=alert,
        event=act.value,
        from_state=before,
        to_state=alert.state,
        actor=stamp.actor,
        reason=reason,
        act_id=stamp.act_id,
    )


def of_account(
    account_id: int, stamp: Stamp, act: Act, epoch: int, *, reason: str = ""
) -> Transition:
    return Transition(
        at=stamp.at,
        subject="account",
        account_id=account_id,
        event=act.value,
        actor=stamp.actor,
        reason=reason,
        epoch=epoch,
        act_id=stamp.act_id,
    )
