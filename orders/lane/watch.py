"""Watches what ended without all of its execution until nothing of it can arrive any more.

A late order or a late fill reopens the intent (see `orders.lane.late`). The last look begins when
the last request has expired and the venue has had its lag, counted from the end too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from orders import journal
from orders.journal import LeaseLostError
from orders.lane.absorb import absorb_trades
from orders.lane.context import Lane, log
from orders.lane.sweep import Sweeper
from orders.machine import State
from orders.models import Intent, Market
from orders.prepared import Prepared
from venues.gateway import Look
from venues.profiles import Rung

TICK_S = 1.0
PAUSE_S = (2.0, 60.0)  # between two looks that did not end the watch: the first, the longest
SINCE_MARGIN_MS = 60_000
# Where no expiry is honoured a request may arrive at any time; after a day nobody waits for it.
WITHOUT_EXPIRY = timedelta(days=1)


_MARKET: Prepared[Market] = Prepared(lambda pk: Market.objects.filter(pk=pk))


@dataclass
class Watch:
    """Goes round the markets that have something on watch."""

    lane: Lane
    sweeper: Sweeper
    _next: dict[int, float] = field(default_factory=dict)  # market -> monotonic seconds
    _pause: dict[int, float] = field(default_factory=dict)

    async def run(self) -> None:
        """Until the lease is lost."""
        while True:
            await self.lane.clock.sleep(TICK_S)
            rows = await self.lane.database.run(lambda: journal.watched(self.lane.account.pk))
            by_market: dict[int, list[Intent]] = defaultdict(list)
            for intent in rows:
                by_market[intent.market_id].append(intent)
            for market_id, intents in by_market.items():
                await self.lane.wait_limit()
                ready = [intent for intent in intents if self._ready(intent)]
                if ready and self.lane.clock.monotonic() >= self._next.get(market_id, 0.0):
                    await self._visit(market_id, ready)

    def _ready(self, intent: Intent) -> bool:
        """Whether a look that begins now shows all that can ever be seen of it."""
        profile, lane = self.lane.gateway.profile, self.lane
        assert intent.watched_since is not None
        rested_ms = (lane.clock.now() - intent.watched_since) / timedelta(milliseconds=1)
        if rested_ms <= profile.visibility_lag_ms:
            return False
        if intent.last_expiry_ms is None:
            return True
        latest = intent.last_expiry_ms + profile.clock_margin_ms + profile.visibility_lag_ms
        return lane.venue_clock.at_least_ms() > latest

    async def _visit(self, market_id: int, ready: list[Intent]) -> None:
        """One look for all of a market; whom it clears is watched no more."""
        over: list[Intent] = []
        try:
            if await self._look(market_id, ready):
                over = [intent for intent in ready if not self._may_come(intent)]
                await self.lane.database.run(lambda: journal.unwatch(self.lane.hold, over))
        except LeaseLostError:
            raise
        except Exception:
            log.exception("watch_failed", account=self.lane.account.name, market=market_id)
        first, longest = PAUSE_S
        pause = first
        if len(over) < len(ready):
            pause = min(longest, 2 * self._pause.get(market_id, first / 2))
        self._pause[market_id] = pause
        self._next[market_id] = self.lane.clock.monotonic() + pause

    def _may_come(self, intent: Intent) -> bool:
        """Whether an unanswered request may be on its way that no expiry stops.

        A refusal of the only attempt used that request up.
        """
        refused = State(intent.state) is State.REJECTED and intent.attempt == 1
        if intent.last_expiry_ms is not None or refused or intent.venue_order_id:
            return False
        return self.lane.clock.now() - intent.updated_at < WITHOUT_EXPIRY

    async def _look(self, market_id: int, intents: list[Intent]) -> bool:
        """Its orders by our IDs, then its executions. False where the venue did not tell."""
        (market,) = await self.lane.database.run(partial(_MARKET.rows, market_id))
        since_ms = self._since_ms(intents)
        if not await self.sweeper.sweep(market, since_ms=since_ms):
            return False
        placed = [intent for intent in intents if intent.venue_order_id]
        if not placed or Rung.TRADES not in self.lane.gateway.profile.ladder:
            return True
        return await self._trades(market, placed, since_ms)

    def _since_ms(self, intents: Iterable[Intent]) -> int:
        """Before the first of them could be at the venue, on the venue's clock."""
        first = min(intent.created_at for intent in intents)
        offset_ms = self.lane.venue_clock.offset_ms(self.lane.clock.now())
        return int(first.timestamp() * 1000 + offset_ms - SINCE_MARGIN_MS)

    async def _trades(self, market: Market, intents: list[Intent], since_ms: int) -> bool:
        """All executions of the time at once; order by order where that is more than a page."""
        await self.lane.limiter.request()
        look = await self.lane.gateway.look(Rung.TRADES, market.symbol, since_venue_ms=since_ms)
        await self.lane.heed(look.limited_until_desk_ms)
        if not look.answered:
            return False
        if not look.complete:
            return all([await self._trades_of(intent) for intent in intents])
        for intent in intents:
            await self._digest(intent, look)
        return True

    async def _trades_of(self, intent: Intent) -> bool:
        await self.lane.limiter.request()
        look = await self.lane.gateway.look(
            Rung.TRADES, intent.symbol, venue_order_id=intent.venue_order_id
        )
        await self.lane.heed(look.limited_until_desk_ms)
        await self._digest(intent, look)
        return look.answered

    async def _digest(self, intent: Intent, look: Look) -> None:
        mine = tuple(
            trade
            for trade in look.trades
            if trade.venue_order_id == intent.venue_order_id and trade.side == intent.side
        )
        if mine:
            await absorb_trades(self.lane, intent.pk, mine, "watch:trades", look.evidence)
