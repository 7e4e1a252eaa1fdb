"""Admit a decision: one row and one line of the journal, or the row that is there already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import IntegrityError, transaction

from orders.journal import entries
from orders.journal.batch import LOCKED_MARKETS
from orders.journal.entries import Stamp
from orders.journal.restored import recognise
from orders.journal.writing import writing
from orders.machine import Event, MarketState, next_state
from orders.models import Intent, Market
from orders.prepared import Prepared, insert, insert_one, update


class CollisionError(Exception):
    """Another decision has the same short client order ID. Neither may share it."""


@dataclass(frozen=True, slots=True)
class Admission:
    """`created` is False where the decision was admitted before; the intent is that row then."""

    intent: Intent
    created: bool


def find(account_id: int, decision_key: str) -> Intent | None:
    """The intent of a decision, where it was admitted before."""
    return _BY_KEY.first(account_id, decision_key)


_BY_KEY: Prepared[Intent] = Prepared(
    lambda account_id, key: Intent.objects.filter(account_id=account_id, decision_key=key)
)


def admit(
    intents: Sequence[Intent], *, actor: str, at: datetime
) -> list[Admission | CollisionError]:
    """Write new intents with their first transitions; the unique constraints decide who is first.

    One transaction for all; the answers come in the order of the intents. A halted market denies
    its intent, on the record.
    """
    stamp = Stamp.new(actor, at)
    answers: dict[int, Admission | CollisionError] = {}
    with writing():
        # Markets first, in one order, as everywhere in the journal: else two lists may deadlock.
        rows = LOCKED_MARKETS.rows({intent.market_id for intent in intents})
        markets = {market.pk: market for market in rows}
        for place in sorted(range(len(intents)), key=lambda place: intents[place].decision_key):
            answers[place] = _admit(intents[place], markets, stamp)
    return [answers[place] for place in range(len(intents))]


def _admit(
    intent: Intent, markets: Mapping[int, Market], stamp: Stamp
) -> Admission | CollisionError:
    try:
        with transaction.atomic():
            _write(intent, markets[intent.market_id], stamp)
    except IntegrityError:
        existing = find(intent.account_id, intent.decision_key) or recognise(intent, stamp)
        if existing is not None:
            return Admission(existing, created=False)
        if _id_taken(intent):
            return CollisionError(
                f"another decision of this account has the client order ID "
                f"{intent.client_order_id}; decide anew, with another instant or key"
            )
        raise
    return Admission(intent, created=True)


def _write(intent: Intent, market: Market, stamp: Stamp) -> None:
    halted = market.state == MarketState.HALTED
    event = Event.DENIED if halted else Event.SUBMITTED
    intent.state = intent.admitted_as = next_state(None, event).value
    intent.reason = f"market halted: {market.halted_reason}" if halted else ""
    intent.created_at = intent.updated_at = stamp.at
    intent.submitted_by = stamp.actor
    intent.version = 1
    insert_one(intent)
    insert([entries.of_intent(intent, stamp, event.value, "", reason=intent.reason)])
    market.last_event_at = stamp.at
    update(market, ["last_event_at"])


def _id_taken(intent: Intent) -> bool:
    return Intent.objects.filter(
        account_id=intent.account_id, client_order_id=intent.client_order_id
    ).exists()
