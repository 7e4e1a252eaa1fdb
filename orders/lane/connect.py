"""Reaching the venue: its rules and its clock, without which nothing can be sent or judged."""

from __future__ import annotations

from functools import partial

from orders import accounts, journal
from orders.journal import AlertDraft
from orders.lane.context import Lane, log
from venues.gateway import ConnectError

BACKOFF_S = (0.5, 1.0, 2.0, 5.0)
ALERT_AFTER_S = 15.0


async def connect(lane: Lane) -> bool:
    """Try until it works, or the lane is told to stop. People are told after a while."""
    began, tries, told = lane.clock.monotonic(), 0, False
    while not lane.stopping:
        await lane.wait_limit()
        reason = await _try(lane)
        if not reason:
            await lane.database.run(partial(_over, lane))
            return True
        log.warning("not_connected", account=lane.account.name, reason=reason)
        if not told and lane.clock.monotonic() - began > ALERT_AFTER_S:
            await lane.database.run(partial(_tell, lane, reason))
            told = True
        await lane.clock.sleep(BACKOFF_S[min(tries, len(BACKOFF_S) - 1)])
        tries += 1
    return False


async def _try(lane: Lane) -> str:
    """Connect once; says why it did not work, "" where it did."""
    try:
        rules = {info.symbol: info for info in await lane.gateway.connect()}
    except ConnectError as error:
        return str(error)
    if not await lane.learn_clock():
        return "the venue's clock did not answer"
    await lane.database.run(partial(accounts.learn_rules, lane.account.pk, rules))
    return ""


def _topic(lane: Lane) -> str:
    return f"venue_unreachable:{lane.account.pk}"


def _tell(lane: Lane, reason: str) -> None:
    draft = AlertDraft(
        kind="venue_unreachable",
        topic=_topic(lane),
        severity="critical",
        message=f"{lane.account.name} is not connected, and nothing is sent for it: {reason}",
        remedy="Check the network, the account file (symbols, base_url) and the credentials.",
        account_id=lane.account.pk,
    )
    journal.raise_alert(draft, actor=lane.actor, at=lane.clock.now())


def _over(lane: Lane) -> None:
    journal.resolve_topic(_topic(lane), actor=lane.actor, reason="connected", at=lane.clock.now())
