"""Leases: who may act for an account, by the database's clock, fenced by an epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection
from django.db.models import Q

from orders.journal import entries
from orders.journal.entries import Stamp
from orders.journal.writing import database_now, writing
from orders.machine import Act
from orders.models import Account, LaneProcess, Lease, Market

LEASE_S = 3.0
# A hand-over is clean for so long. A journal restored from a backup may show a released lease too,
# but an old one, and then everything is looked at first.
CLEAN_FOR_S = 5.0


_CHECK = {
    "postgresql": "SELECT owner, epoch, deadline > clock_timestamp() FROM orders_lease"
    " WHERE account_id = %s FOR SHARE",
    "sqlite": "SELECT owner, epoch, deadline > strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now')"
    " FROM orders_lease WHERE account_id = %s",
}


class LeaseLostError(Exception):
    """The lane does not own the account any more. Nothing was written."""


@dataclass(frozen=True, slots=True)
class Hold:
    """A lease as its owner knows it."""

    account_id: int
    owner: str
    epoch: int


def take(account_id: int, *, owner: str, at: datetime) -> tuple[Hold, bool] | None:
    """Take a free or expired lease. Returns the hold and whether recovery is due, or None."""
    with writing():
        lease = Lease.objects.select_for_update().get(account_id=account_id)
        now = database_now()
        if lease.owner and lease.deadline is not None and lease.deadline > now:
            return None
        clean = _clean(lease, now)
        lease.owner, lease.epoch = owner, lease.epoch + 1
        lease.taken_at, lease.deadline = now, now + timedelta(seconds=LEASE_S)
        if not clean:
            lease.recovered_at = None
            Market.objects.filter(account_id=account_id).update(looked_over_at=None)
        lease.save()
        reason = "clean hand-over" if clean else "recovery first"
        _journal(account_id, owner, at, Act.LEASE_TAKEN, lease.epoch, reason)
        return Hold(account_id, owner, lease.epoch), not clean


def _clean(lease: Lease, now: datetime) -> bool:
    """Whether the last owner gave it back a moment ago, with nothing in flight."""
    if lease.owner or lease.recovered_at is None or lease.deadline is None:
        return False
    return timedelta(0) <= now - lease.deadline <= timedelta(seconds=CLEAN_FOR_S)


def renew(holds: Sequence[Hold], *, process: LaneProcess) -> list[Hold]:
    """Push the deadlines out and show that the process lives. Returns the holds that hold."""
    with writing() as current:
        current.changed = False  # nobody waits for a renewal
        now = database_now()
        LaneProcess.objects.update_or_create(
            owner=process.owner,
            defaults={
                "host": process.host,
                "pid": process.pid,
                "started_at": process.started_at,
                "seen_at": now,
            },
        )
        kept = []
        for hold in holds:
            mine = Lease.objects.filter(
                account_id=hold.account_id, owner=hold.owner, epoch=hold.epoch, deadline__gt=now
            )
            if mine.update(deadline=now + timedelta(seconds=LEASE_S)):
                kept.append(hold)
        return kept


def free_accounts() -> list[int]:
    """Active accounts that nobody holds."""
    free = Q(owner="") | Q(deadline__isnull=True) | Q(deadline__lte=database_now())
    rows = Lease.objects.filter(free, account__active=True).order_by("account_id")
    return list(rows.values_list("account_id", flat=True))


def fair_share() -> int:
    """How many accounts one of the running lanes should hold at most."""
    seen = database_now() - timedelta(seconds=LEASE_S)
    lanes = LaneProcess.objects.filter(seen_at__gt=seen).count()
    accounts = Account.objects.filter(active=True).count()
    return -(-accounts // max(1, lanes))


def younger_lane(process: LaneProcess) -> bool:
    """Whether a lane that started after this one is alive, and so will outlast it."""
    seen = database_now() - timedelta(seconds=LEASE_S)
    later = Q(started_at__gt=process.started_at) | Q(
        started_at=process.started_at, owner__gt=process.owner
    )
    return LaneProcess.objects.filter(later, seen_at__gt=seen).exists()


def forget_process(owner: str) -> None:
    """The lane has ended by itself."""
    LaneProcess.objects.filter(owner=owner).delete()


def release(hold: Hold, *, clean: bool, at: datetime) -> None:
    """Give the account back. `clean` says that nothing is in flight, so the next lane goes on.

    Releasing a lease that is lost already changes nothing.
    """
    with writing():
        lease = Lease.objects.select_for_update().get(account_id=hold.account_id)
        if (lease.owner, lease.epoch) != (hold.owner, hold.epoch):
            return
        lease.owner, lease.deadline = "", database_now()
        if not clean:
            lease.recovered_at = None
        lease.save()
        reason = "clean" if clean else "the next lane recovers"
        _journal(hold.account_id, hold.owner, at, Act.LEASE_RELEASED, hold.epoch, reason)


def look_over(hold: Hold, market_id: int, *, at: datetime) -> None:
    """Recovery has seen all recent orders of this market: it may place again."""
    with writing():
        check(hold)
        Market.objects.filter(pk=market_id).update(looked_over_at=at)


def take_recovered(hold: Hold, *, at: datetime, summary: str) -> None:
    """The recovery pass is over: markets that are not in doubt are open."""
    with writing():
        check(hold)
        Lease.objects.filter(account_id=hold.account_id).update(recovered_at=database_now())
        _journal(hold.account_id, hold.owner, at, Act.RECOVERED, hold.epoch, summary)


def set_limit(hold: Hold, *, until: datetime, at: datetime) -> None:
    """The venue asked to be left alone until then. The end outlives the lane; it only moves out."""
    with writing():
        check(hold)
        account = Account.objects.select_for_update().get(pk=hold.account_id)
        if account.limited_until is not None and account.limited_until >= until:
            return
        account.limited_until = until
        account.save(update_fields=["limited_until"])
        reason = f"no request before {until:%Y-%m-%d %H:%M:%S} UTC"
        _journal(hold.account_id, hold.owner, at, Act.LIMITED, hold.epoch, reason)


def check(hold: Hold) -> None:
    """Within a transaction: lock the lease (shared) and compare owner, epoch and deadline.

    The lock makes a takeover wait for this transaction, so that a claim can never commit after the
    new lane has looked. Raises LeaseLostError.
    """
    with connection.cursor() as cursor:
        cursor.execute(_CHECK[connection.vendor], [hold.account_id])
        row = cursor.fetchone()
    if row is None or (row[0], row[1]) != (hold.owner, hold.epoch) or not row[2]:
        raise LeaseLostError(f"epoch {hold.epoch} of account {hold.account_id} is over")


def _journal(account_id: int, owner: str, at: datetime, act: Act, epoch: int, reason: str) -> None:
    account = Account.objects.get(pk=account_id)
    stamp = Stamp.new(f"lane:{owner}", at)
    entries.of_account(account, stamp, act, epoch, reason=reason).save()
