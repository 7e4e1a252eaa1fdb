"""What a lane would have done before a test begins."""

from __future__ import annotations

from orders import journal
from orders.clock import SYSTEM
from orders.journal import Hold
from orders.models import Market


def recovered(hold: Hold) -> None:
    """The recovery pass is over, and every market was looked over."""
    for market in Market.objects.filter(account_id=hold.account_id):
        journal.look_over(hold, market.pk, at=SYSTEM.now())
    journal.take_recovered(hold, at=SYSTEM.now(), summary="nothing there")
