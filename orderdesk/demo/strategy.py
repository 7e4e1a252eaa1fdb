"""A strategy that shows the desk at work: small orders on three symbols, sometimes a cancel.

It has no view of the market. A fault now and then lets UNKNOWN and its resolution be watched.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import structlog
from django.db import DatabaseError, connection

from orderdesk.demo import venue
from orders import intake, operate
from orders.machine import MarketState, State
from orders.models import Intent, Market

log = structlog.get_logger(__name__)

ACCOUNT = "demo"
NAME = "demo-drift"
PAUSE_S = (1.5, 4.0)  # between two decisions
FAULT_EVERY_S = (20.0, 40.0)
CANCEL_AFTER = timedelta(seconds=30)
SIZE = {"BTC/USDT": Decimal("0.001"), "ETH/USDT": Decimal("0.02"), "SOL/USDT": Decimal("0.5")}
TICK = Decimal("0.01")
DISTANCE = (Decimal("-0.001"), Decimal(0), Decimal("0.002"))  # of a limit from the last price


@dataclass
class Strategy:
    """Decides and submits until the process is ended."""

    random: random.Random = field(default_factory=random.Random)

    def run(self) -> None:
        fault_at = time.monotonic() + self.random.uniform(*FAULT_EVERY_S)
        while True:
            time.sleep(self.random.uniform(*PAUSE_S))
            try:
                self.step()
                if time.monotonic() >= fault_at:
                    self.disturb()
                    fault_at = time.monotonic() + self.random.uniform(*FAULT_EVERY_S)
            except DatabaseError as error:
                log.warning("demo_pauses", error=str(error))
                connection.close()
            except (intake.DecisionError, venue.VenueError) as error:
                log.warning("demo_decision_failed", error=str(error))

    def step(self) -> Intent | None:
        """Submit one decision on an open market, and cancel what has rested for long."""
        self._cancel_old()
        markets = Market.objects.filter(
            account__name=ACCOUNT, active=True, state=MarketState.OPEN.value
        )
        if not (choice := list(markets)):
            return None
        market = self.random.choice(choice)
        limit = self.random.random() < 0.4
        side = self._side(market)
        return intake.submit(
            intake.Decision(
                account=ACCOUNT,
                strategy=NAME,
                symbol=market.symbol,
                side=side,
                type="limit" if limit else "market",
                quantity=SIZE[market.symbol] * self.random.randint(1, 5),
                price=self._price(market.symbol, side) if limit else None,
                decided_at=datetime.now(UTC),
                valid_for_s=30,
            ),
            actor=f"strategy:{NAME}",
        )

    def disturb(self) -> None:
        """Load one of the faults that resolve by themselves, on any symbol."""
        fault = self.random.choice([fault for fault in venue.FAULTS if fault.gentle])
        symbol = self.random.choice(venue.SYMBOLS)
        venue.inject(fault, symbol)
        log.info("demo_fault", fault=fault.name, symbol=symbol)

    def _side(self, market: Market) -> str:
        """Lean against the position, so that it stays small."""
        bound = 10 * SIZE[market.symbol]
        if abs(market.position) > bound:
            return "sell" if market.position > 0 else "buy"
        return self.random.choice(["buy", "sell"])

    def _price(self, symbol: str, side: str) -> Decimal:
        """Through the market, at it, or a little away, where it rests."""
        away = self.random.choice(DISTANCE) * (-1 if side == "buy" else 1)
        return (venue.price(symbol) * (1 + away)).quantize(TICK)

    def _cancel_old(self) -> None:
        old = Intent.objects.filter(
            strategy=NAME,
            state=State.LIVE.value,
            cancel_requested_at=None,
            created_at__lt=datetime.now(UTC) - CANCEL_AFTER,
        )
        for intent in old[:2]:
            operate.cancel(intent.pk, actor=f"strategy:{NAME}", reason="rested for 30 s")
