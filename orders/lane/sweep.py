"""Looks regularly for what should not be there: orders with our prefix that the journal lacks,
or holds as waiting or as ended."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from orders import journal
from orders.journal import Halt, LeaseLostError, Orphan
from orders.lane.absorb import Sighting, absorb, is_ours, sighting
from orders.lane.context import Lane, log
from orders.machine import TERMINAL, State
from orders.models import Desk, Intent, Market
from orders.prepared import Prepared
from venues.gateway import Look, OrderReport
from venues.profiles import IdFormat, Rung

BUSY_EVERY_S = 5.0  # a market where something happened lately
QUIET_EVERY_S = 60.0
BUSY_FOR_S = 60.0
TICK_S = 0.5
BACK_MS = 23 * 3600 * 1000  # how far a first sweep looks back; venues bound the window by a day
MOST_PAGES = 20
OVERLAP_MS = 120_000
_LENGTH = {IdFormat.ALNUM18: 18}
_SETTLED = TERMINAL | {State.INTENT}


_MARKETS: Prepared[Market] = Prepared(
    lambda account_id: Market.objects.filter(account_id=account_id, active=True)
)
_NAMED: Prepared[Intent] = Prepared(
    lambda account_id, names: Intent.objects.filter(
        account_id=account_id, client_order_id__in=names
    )
)


@dataclass
class Sweeper:
    """Goes through the account's markets, one look at a time."""

    lane: Lane
    swept_at: dict[int, float] = field(default_factory=dict)  # market -> monotonic seconds
    since_ms: dict[int, int] = field(default_factory=dict)  # market -> venue clock
    prefix: str = ""

    async def run(self) -> None:
        """Sweep until the lease is lost. One market's failure does not hold up the others."""
        while True:
            await self.lane.clock.sleep(TICK_S)
            for market in await self.lane.database.run(self.markets):
                await self.lane.wait_limit()
                if not self._due(market):
                    continue
                try:
                    if market.looked_over_at is None:
                        await self.look_over(market)
                    else:
                        await self.sweep(market)
                except LeaseLostError:
                    raise
                except Exception:
                    log.exception("sweep_failed", symbol=market.symbol)
                self.swept_at[market.pk] = self.lane.clock.monotonic()

    async def look_over(self, market: Market) -> bool:
        """Recovery of one market: it may place again once all its recent orders were seen."""
        if not await self.sweep(market, everything=True):
            return False
        at = self.lane.clock.now()
        await self.lane.database.run(lambda: journal.look_over(self.lane.hold, market.pk, at=at))
        return True

    async def sweep(
        self, market: Market, *, everything: bool = False, since_ms: int | None = None
    ) -> bool:
        """Compare one market's recent orders with the journal.

        `since_ms`: of an age of the caller's choice, on the venue's clock. With `everything`,
        orders that are being followed are digested too: that is recovery in bulk. False where the
        venue did not tell. Raises LeaseLostError after an orphan was found: the journal may have
        come from a backup, so the account starts over with a recovery.
        """
        began_ms = int(self.lane.venue_clock.now_ms())
        chosen = since_ms is not None
        if since_ms is None:
            since_ms = self.since_ms.get(market.pk, began_ms - BACK_MS)
        rungs = [r for r in (Rung.OPEN_ORDERS, Rung.CLOSED_ORDERS) if r in self._ladder]
        for rung in rungs:
            if not await self._sweep_rung(market, rung, since_ms, everything):
                return False
        if not chosen:
            self.since_ms[market.pk] = began_ms - OVERLAP_MS
        return True

    @property
    def _ladder(self) -> tuple[Rung, ...]:
        return self.lane.gateway.profile.ladder

    async def _sweep_rung(
        self, market: Market, rung: Rung, since_ms: int, everything: bool
    ) -> bool:
        """Page by page, to the end. False where a page failed or there is no end to them."""
        after = ""
        for _ in range(MOST_PAGES):
            look = await self._look(market, rung, since_ms, after)
            if not look.answered:
                return False
            await self._compare(market, look, everything=everything)
            if look.complete:
                return True
            last = max((report.venue_order_id for report in look.reports), key=_number, default="")
            if rung is not Rung.CLOSED_ORDERS or not last or last == after:
                return False
            after = last
        return False

    async def _look(self, market: Market, rung: Rung, since_ms: int, after: str) -> Look:
        await self.lane.limiter.request()
        closed = rung is Rung.CLOSED_ORDERS
        look = await self.lane.gateway.look(
            rung,
            market.symbol,
            venue_order_id=after,
            since_venue_ms=since_ms if closed and not after else None,
        )
        await self.lane.heed(look.limited_until_desk_ms)
        return look

    async def _compare(self, market: Market, look: Look, *, everything: bool) -> None:
        self.prefix = self.prefix or await self.lane.database.run(_prefix)
        form = self.lane.gateway.profile.id_format
        ours = [report for report in look.reports if named_by(self.prefix, form, report)]
        known = await self.lane.database.run(lambda: self._known(ours))
        digests, orphans = [], []
        for report in ours:
            intent = known.get(report.client_order_id)
            if intent is None:
                orphans.append(report)
            elif (everything or State(intent.state) in _SETTLED) and is_ours(report, intent):
                seen = sighting(report, f"sweep:{look.rung.value}", look.evidence)
                digests.append(self._digest(intent, seen))
        await asyncio.gather(*digests)
        for report in orphans:
            await self._adopt(market, report, look)
        if orphans:
            await self._restored(market, orphans)

    async def _digest(self, intent: Intent, seen: Sighting) -> None:
        """One broken order halts its market; the others go on."""
        try:
            await absorb(self.lane, intent.pk, seen)
        except LeaseLostError:
            raise
        except Exception as error:
            log.exception("order_not_digested", client_order_id=intent.client_order_id)
            text = f"{intent.client_order_id} cannot be handled: {type(error).__name__}: {error}"
            halt = Halt(intent.market_id, text, kind="broken", intent_id=intent.pk)
            await self.lane.recorder.write(halts=[halt])

    def _known(self, reports: Iterable[OrderReport]) -> dict[str, Intent]:
        names = [report.client_order_id for report in reports]
        rows = _NAMED.rows(self.lane.account.pk, names)
        return {row.client_order_id: row for row in rows}

    async def _adopt(self, market: Market, report: OrderReport, look: Look) -> None:
        """Bring an order into view that the journal lacks."""
        lane, evidence = self.lane, look.evidence.as_json()
        orphan = Orphan(market.pk, report, {**evidence, "order": report.venue_order_id})
        log.error("orphan_order", account=lane.account.name, order=report.client_order_id)
        intent = await lane.database.run(
            lambda: journal.adopt(orphan, hold=lane.hold, actor=lane.actor, at=lane.clock.now())
        )
        lane.book.keep([intent])
        await self._digest(intent, sighting(report, "orphan", look.evidence))

    async def _restored(self, market: Market, orphans: list[OrderReport]) -> None:
        lane = self.lane
        names = ", ".join(report.client_order_id for report in orphans[:5])
        reason = f"{market.symbol}: the venue knows {len(orphans)} orders of ours, e.g. {names}"
        await lane.database.run(
            lambda: journal.mark_restored(
                lane.account.pk, actor=lane.actor, at=lane.clock.now(), reason=reason
            )
        )
        raise LeaseLostError(f"{lane.account.name}: starting over; {reason}")

    def markets(self) -> list[Market]:
        return _MARKETS.rows(self.lane.account.pk)

    def _due(self, market: Market) -> bool:
        now = self.lane.clock.monotonic()
        event = market.last_event_at
        age_s = (self.lane.clock.now() - event).total_seconds() if event else BUSY_FOR_S
        every_s = BUSY_EVERY_S if age_s < BUSY_FOR_S else QUIET_EVERY_S
        return now - self.swept_at.get(market.pk, float("-inf")) >= every_s


def named_by(prefix: str, form: IdFormat, report: OrderReport) -> bool:
    """Whether this desk named the order. Forms without room for a prefix cannot tell."""
    length = _LENGTH.get(form)
    name = report.client_order_id
    return (
        length is not None
        and len(name) == length
        and name.startswith(prefix)
        and re.fullmatch(r"[a-z2-7]+", name) is not None
    )


def _number(name: str) -> tuple[int, str]:
    """Venue order IDs grow: by length first, then by text."""
    return len(name), name


def _prefix() -> str:
    return Desk.objects.get().prefix
