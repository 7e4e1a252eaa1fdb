"""Accounts that cannot send: what their markets show as open is open in name only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from orders.machine import AlertState
from orders.models import Account, Alert, Lease

# A lease is handed over within a second, and a start takes a few: no reason for an alarm.
GRACE = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class CutOff:
    """An account for which nothing is sent. `since` is None where it never was connected."""

    account: str
    since: datetime | None
    why: str


def cut_off(accounts: Iterable[Account], now: datetime) -> tuple[CutOff, ...]:
    """In the order of the accounts, which come with their leases. One query."""
    unreachable = {
        alert.account_id: alert
        for alert in Alert.objects.filter(kind="venue_unreachable").exclude(
            state=AlertState.RESOLVED
        )
    }
    found = (_cut_off(account, unreachable.get(account.pk), now) for account in accounts)
    return tuple(row for row in found if row is not None)


def _cut_off(account: Account, alert: Alert | None, now: datetime) -> CutOff | None:
    lease: Lease | None = getattr(account, "lease", None)
    if lease is None or lease.deadline is None:
        return CutOff(
            account.name, None, "no lane has taken it yet; after a start that takes seconds"
        )
    if lease.deadline + GRACE < now:
        return CutOff(account.name, lease.deadline, "its lane is silent; is the desk running?")
    if account.limited_until is not None and account.limited_until > now:
        until = f"{account.limited_until:%H:%M:%S} UTC"
        return CutOff(account.name, None, f"the venue limits or bans it until {until}")
    if alert is not None:
        return CutOff(account.name, lease.taken_at or alert.raised_at, alert.message)
    if lease.recovered_at is None and (lease.taken_at or lease.deadline) + GRACE < now:
        why = "its lane connects to the venue and asks about open orders"
        return CutOff(account.name, lease.taken_at, why)
    return None
