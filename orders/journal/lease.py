"""Leases: who may act for an account, by the database's clock, fenced by an epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection
from django.db.models import Q, QuerySet

from orders.journal import entries
from orders.journal.entries import Stamp
from orders.journal.writing import database_now, writing
from orders.machine import Act
from orders.models import Account, LaneProcess, Lease, Market
from orders.prepared import Prepared, adapted, insert, insert_one, update

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


_PUSH_OUT = (
    "UPDATE orders_lease SET deadline = %s"
    " WHERE account_id = %s AND owner = %s AND epoch = %s AND deadline > %s"
)


_CLOSE = "UPDATE orders_market SET looked_over_at = NULL WHERE account_id = %s"
_LEASE_FIELDS = ("owner", "epoch", "deadline", "taken_at", "recovered_at")
_LOCKED: Prepared[Lease] = Prepared(
    lambda account_id: Lease.objects.select_for_update().filter(account_id=account_id)
)


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
        lease = _LOCKED.rows(account_id)[0]
        now = database_now()
        if lease.owner and lease.deadline is not None and lease.deadline > now:
            return None
        clean = _clean(lease, now)
        lease.owner, lease.epoch = owner, lease.epoch + 1
        lease.taken_at, lease.deadline = now, now + timedelta(seconds=LEASE_S)
        if not clean:
            lease.recovered_at = None
            _close_markets(account_id)
        update(lease, _LEASE_FIELDS)
        reason = "clean hand-over" if clean else "recovery first"
        _journal(account_id, owner, at, Act.LEASE_TAKEN, lease.epoch, reason)
        return Hold(account_id, owner, lease.epoch), not clean


def _close_markets(account_id: int) -> None:
    """Nothing is sent in any market of the account before it was looked over again."""
    with connection.cursor() as cursor:
        cursor.execute(_CLOSE, [account_id])


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
        _seen(process, now)
        return [hold for hold in holds if _push_out(hold, now)]


def _push_out(hold: Hold, now: datetime) -> bool:
    until = now + timedelta(seconds=LEASE_S)
    given = [adapted(until), hold.account_id, hold.owner, hold.epoch, adapted(now)]
    with connection.cursor() as cursor:
        cursor.execute(_PUSH_OUT, given)
        return bool(cursor.rowcount == 1)


def _seen(process: LaneProcess, now: datetime) -> None:
    process.seen_at = now
    if process.pk is None or not update(process, ["seen_at"]):
        insert_one(process)


def free_accounts() -> list[int]:
    """Active accounts that nobody holds."""
    return _FREE.rows(database_now())


def _free(now: datetime) -> QuerySet[Lease, int]:
    free = Q(owner="") | Q(deadline__isnull=True) | Q(deadline__lte=now)
    rows = Lease.objects.filter(free, account__active=True).order_by("account_id")
    return rows.values_list("account_id", flat=True)


_FREE: Prepared[int] = Prepared(_free)
_LANES: Prepared[int] = Prepared(
    lambda seen: LaneProcess.objects.filter(seen_at__gt=seen).values_list("pk", flat=True)
)
_ACCOUNTS: Prepared[int] = Prepared(
    lambda: Account.objects.filter(active=True).values_list("pk", flat=True)
)


def fair_share() -> int:
    """How many accounts one of the running lanes should hold at most."""
    seen = database_now() - timedelta(seconds=LEASE_S)
    lanes, accounts = len(_LANES.rows(seen)), len(_ACCOUNTS.rows())
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
        lease = _LOCKED.rows(hold.account_id)[0]
        if (lease.owner, lease.epoch) != (hold.owner, hold.epoch):
            return
        lease.owner, lease.deadline = "", database_now()
        if not clean:
            lease.recovered_at = None
        update(lease, _LEASE_FIELDS)
        reason = "clean" if clean else "the next lane recovers"
        _journal(hold.account_id, hold.owner, at, Act.LEASE_RELEASED, hold.epoch, reason)


def look_over(hold: Hold, market_id: int, *, at: datetime) -> None:
    """Recovery has seen all recent orders of this market: it may place again."""
    with writing():
        check(hold)
        update(Market(pk=market_id, looked_over_at=at), ["looked_over_at"])


def take_recovered(hold: Hold, *, at: datetime, summary: str) -> None:
    """The recovery pass is over: markets that are not in doubt are open."""
    with writing():
        check(hold)
        lease = Lease(account_id=hold.account_id, recovered_at=database_now())
        update(lease, ["recovered_at"])
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
    stamp = Stamp.new(f"lane:{owner}", at)
    insert([entries.of_account(account_id, stamp, act, epoch, reason=reason)])
