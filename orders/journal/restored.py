"""A journal that came from a backup: what the venue knows and the journal lacks.

The lease's epoch jumps, so that no epoch given out before the restore can be valid again; the lane
loses its lease, and the next one starts with a recovery. What was decided before the restore is
looked for before it is sent for the first time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from orders.journal import entries, lease
from orders.journal.batch import Batch
from orders.journal.entries import Stamp
from orders.journal.lease import Hold
from orders.journal.markets import Halt, put_halt
from orders.journal.writing import writing
from orders.machine import Act, Event, Note, State, next_state
from orders.models import Account, Intent, Lease, Market
from venues.gateway import OrderReport

EPOCH_JUMP = 1_000_000
STRATEGY = "(orphan)"
SECOND = "-"  # in the name of a further venue order under one of our IDs; no such ID contains it


@dataclass(frozen=True, slots=True)
class Orphan:
    """An order at the venue with the desk's prefix that the journal lacks.

    `second`: the journal has another venue order under its client order ID.
    """

    market_id: int
    report: OrderReport
    evidence: Mapping[str, Any]
    second: bool = False


def mark_restored(account_id: int, *, actor: str, at: datetime, reason: str) -> Account:
    """From now on the journal may lack what was decided before `at`."""
    with writing():
        row = Lease.objects.select_for_update().get(account_id=account_id)
        account = Account.objects.select_for_update().get(pk=account_id)
        account.restored_at = at
        account.save(update_fields=["restored_at"])
        row.epoch += EPOCH_JUMP
        row.owner, row.deadline, row.recovered_at = "", None, None
        row.save()
        Market.objects.filter(account_id=account_id).update(looked_over_at=None)
        stamp = Stamp.new(actor, at)
        entries.of_account(account.pk, stamp, Act.RESTORED, row.epoch, reason=reason).save()
        return account


def adopt(orphan: Orphan, *, hold: Hold, actor: str, at: datetime) -> Intent:
    """Bring an orphan into view as an intent that was found, and halt its market."""
    with writing():
        lease.check(hold)
        stamp = Stamp.new(actor, at)
        market = (
            Market.objects.select_for_update(no_key=True, of=("self",))
            .select_related("account")
            .get(pk=orphan.market_id)
        )
        existing = _existing(orphan, market)
        if existing is not None:
            return existing
        intent = _row(orphan, market, stamp)
        intent.save(force_insert=True)
        reason = f"orphan: the venue has order {orphan.report.venue_order_id}, the journal had not"
        entries.of_intent(intent, stamp, Event.SUBMITTED.value, "", reason=reason).save()
        batch = Batch(stamp)
        batch.hold_markets([market])
        columns = {"venue_order_id": orphan.report.venue_order_id}
        batch.apply(intent, Event.FOUND, reason=reason, evidence=orphan.evidence, columns=columns)
        batch.flush()
        put_halt(market, _halt(orphan, intent), stamp)
        return intent


def _existing(orphan: Orphan, market: Market) -> Intent | None:
    rows = Intent.objects.filter(account_id=market.account_id)
    if orphan.second:
        order = orphan.report.venue_order_id
        return rows.filter(market=market, venue_order_id=order).first()
    return rows.filter(client_order_id=orphan.report.client_order_id).first()


def _halt(orphan: Orphan, intent: Intent) -> Halt:
    if orphan.second:
        return Halt(
            intent.market_id,
            f"{intent.client_order_id} is a further venue order, {intent.venue_order_id}, with "
            f"the client order ID {orphan.report.client_order_id}",
            kind="two orders",
            remedy="Does somebody else use this account? Watch or cancel one of the two orders "
            "(each has a page of its own), then resume.",
            intent_id=intent.pk,
        )
    return Halt(
        intent.market_id,
        f"{intent.client_order_id} is at the venue but was not in the journal",
        kind="orphan",
        remedy="Was the journal restored from a backup, or does a second desk use this "
        "account? Watch or cancel the order, then resume.",
        intent_id=intent.pk,
    )


def _name(orphan: Orphan, market: Market) -> str:
    """Its client order ID; a further order under that ID is numbered: name-2, name-3."""
    name = orphan.report.client_order_id
    if not orphan.second:
        return name
    further = Intent.objects.filter(
        account_id=market.account_id, client_order_id__startswith=f"{name}{SECOND}"
    )
    return f"{name}{SECOND}{further.count() + 2}"


def clear(
    intent_id: int, *, hold: Hold, actor: str, at: datetime, evidence: Mapping[str, Any]
) -> None:
    """The intent was proven absent at the venue; its first send may go."""
    with writing():
        lease.check(hold)
        stamp = Stamp.new(actor, at)
        intent = Intent.objects.select_for_update().get(pk=intent_id)
        if State(intent.state) is not State.INTENT:
            return
        batch = Batch(stamp)
        batch.apply(
            intent,
            Note.LOOKED,
            reason="proven absent before its first send",
            evidence=evidence,
            columns={"cleared_at": at},
        )
        batch.flush()


def recognise(wanted: Intent, stamp: Stamp) -> Intent | None:
    """Within a transaction: the orphan that this decision once placed now carries its name."""
    orphan = (
        Intent.objects.select_for_update()
        .filter(
            account_id=wanted.account_id,
            client_order_id=wanted.client_order_id,
            orphan=True,
            strategy=STRATEGY,
        )
        .first()
    )
    if orphan is None or _order(orphan) != _order(wanted):
        return None  # the same name for another order: nobody may share it
    batch = Batch(stamp)
    names = ("strategy", "type", "price", "decided_at", "valid_until", "key", "decision_key")
    columns = {name: getattr(wanted, name) for name in (*names, "contents")}
    batch.apply(
        orphan, Note.EVIDENCE, reason="the decision of this orphan came again", columns=columns
    )
    batch.flush()
    return orphan


def _order(intent: Intent) -> tuple[int, str, Decimal]:
    return intent.market_id, intent.side, intent.quantity


def _row(orphan: Orphan, market: Market, stamp: Stamp) -> Intent:
    report, name = orphan.report, _name(orphan, market)
    return Intent(
        account_id=market.account_id,
        market=market,
        strategy=STRATEGY,
        symbol=market.symbol,
        side=report.side,
        type="limit",
        quantity=report.quantity,
        price=report.average_price,
        decided_at=stamp.at,
        valid_until=stamp.at,
        decision_key=f"orphan:{name}",
        client_order_id=name,
        state=next_state(None, Event.SUBMITTED).value,
        admitted_as=State.INTENT.value,
        submitted_by=stamp.actor,
        created_at=stamp.at,
        updated_at=stamp.at,
        orphan=True,
    )
