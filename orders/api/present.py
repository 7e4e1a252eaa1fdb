"""Rows as the API shows them."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Any

from orders.fields import plain
from orders.machine import TERMINAL, State
from orders.models import Alert, Fill, Intent, Market, Transition

_AVERAGE = Context(prec=16, rounding=ROUND_HALF_EVEN)


def instant(at: datetime) -> str:
    """UTC, always with six decimals, so that texts sort as instants do."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _instant(at: datetime | None) -> str | None:
    return None if at is None else instant(at)


def _number(value: Decimal | None) -> str | None:
    return None if value is None else plain(value)


def _ordered(value: Any) -> Any:
    """PostgreSQL gives the members of an object back in another order than they came."""
    match value:
        case dict():
            return {name: _ordered(value[name]) for name in sorted(value)}
        case list():
            return [_ordered(inner) for inner in value]
    return value


def _decision(intent: Intent) -> dict[str, Any]:
    return {
        "client_order_id": intent.client_order_id,
        "account": intent.account.name,
        "strategy": intent.strategy,
        "symbol": intent.symbol,
        "side": intent.side,
        "type": intent.type,
        "quantity": plain(intent.quantity),
        "price": _number(intent.price),
        "time_in_force": intent.time_in_force or None,
        "post_only": intent.post_only,
        "reduce_only": intent.reduce_only,
        "params": _ordered(intent.params),
        "key": intent.key or None,
        "decided_at": instant(intent.decided_at),
        "valid_until": instant(intent.valid_until),
        "created_at": instant(intent.created_at),
        "submitted_by": intent.submitted_by,
    }


def admitted(intent: Intent) -> dict[str, Any]:
    """Only what never changes, so that every repetition gets the same bytes."""
    return {**_decision(intent), "state": intent.admitted_as}


def denied(intent: Intent) -> dict[str, Any]:
    """With the words of its first line in the journal, which outlive a later change of state."""
    first = intent.transitions.get(seq=1)
    return {**admitted(intent), "code": "denied", "detail": first.reason}


def current(intent: Intent) -> dict[str, Any]:
    average = _AVERAGE.divide(intent.cost, intent.filled) if intent.filled else None
    return {
        **_decision(intent),
        "state": intent.state,
        "terminal": State(intent.state) in TERMINAL,
        "reason": intent.reason,
        "updated_at": instant(intent.updated_at),
        "version": intent.version,
        "attempt": intent.attempt,
        "venue_order_id": intent.venue_order_id or None,
        "filled": plain(intent.filled),
        "average_price": _number(average),
        "cost": plain(intent.cost),
        "doubt_since": _instant(intent.doubt_since),
        "cancel_requested_at": _instant(intent.cancel_requested_at),
        "cancel_requested_by": intent.cancel_requested_by or None,
    }


def transition(line: Transition) -> dict[str, Any]:
    return {
        "id": line.pk,
        "at": instant(line.at),
        "subject": line.subject,
        "account": line.account.name if line.account else None,
        "symbol": line.market.symbol if line.market else None,
        "client_order_id": line.intent.client_order_id if line.intent else None,
        "alert": line.alert_id,
        "seq": line.seq,
        "event": line.event,
        "from_state": line.from_state or None,
        "to_state": line.to_state or None,
        "actor": line.actor,
        "reason": line.reason,
        "evidence": _ordered(line.evidence),
        "attempt": line.attempt,
        "epoch": line.epoch,
        "act_id": str(line.act_id),
    }


def fill(row: Fill) -> dict[str, Any]:
    return {
        "venue_trade_id": row.venue_trade_id,
        "venue_order_id": row.venue_order_id,
        "side": row.side,
        "quantity": plain(row.quantity),
        "price": plain(row.price),
        "fee": plain(row.fee),
        "fee_currency": row.fee_currency or None,
        "at": instant(row.at),
        "booked_at": instant(row.booked_at),
    }


def market(row: Market, unresolved: int) -> dict[str, Any]:
    return {
        "account": row.account.name,
        "exchange": row.account.exchange,
        "symbol": row.symbol,
        "state": row.state,
        "blocked": unresolved > 0,
        "unresolved": unresolved,
        "position": plain(row.position),
        "base": row.base or None,
        "active": row.active and row.account.active,
        "halted_at": _instant(row.halted_at),
        "halted_reason": row.halted_reason or None,
        "last_event_at": _instant(row.last_event_at),
    }


def alert(row: Alert) -> dict[str, Any]:
    return {
        "id": row.pk,
        "account": row.account.name if row.account else None,
        "symbol": row.market.symbol if row.market else None,
        "client_order_id": row.intent.client_order_id if row.intent else None,
        "kind": row.kind,
        "severity": row.severity,
        "message": row.message,
        "remedy": row.remedy,
        "state": row.state,
        "times": row.times,
        "raised_at": instant(row.raised_at),
        "last_raised_at": instant(row.last_raised_at),
        "acknowledged_at": _instant(row.acknowledged_at),
        "acknowledged_by": row.acknowledged_by or None,
        "note": row.note or None,
        "resolved_at": _instant(row.resolved_at),
        "resolved_by": row.resolved_by or None,
    }
