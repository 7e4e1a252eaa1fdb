"""An account with two markets, and what the tests do to intents."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import count
from typing import Any

import pytest

from orders import accounts, intake, journal
from orders.journal import Change, Hold, Window
from orders.machine import Event
from orders.models import Account, Intent, Market
from tests.support.lane import recovered
from venues.gateway import SecretText, TradeReport, VenueSettings

ACTOR = "lane:test"
_numbers = count(1)


@dataclass
class World:
    """The journal under test, held by the lane `hold`."""

    account: Account
    hold: Hold
    btc: Market
    eth: Market
    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    def submit(self, symbol: str = "BTC/USDT", **changes: Any) -> Intent:
        decision: dict[str, Any] = {
            "account": "main",
            "strategy": "s1",
            "symbol": symbol,
            "side": "buy",
            "type": "market",
            "quantity": "1",
            "decided_at": datetime.now(UTC),
            "key": f"k{next(_numbers)}",
        }
        return intake.submit(intake.Decision(**{**decision, **changes}))

    def window(self, **changes: Any) -> Window:
        values: dict[str, Any] = {
            "limit": 100,
            "at": datetime.now(UTC),
            "offset_ms": 0.0,
            "expiry_ms": 3000,
            "timeout_ms": 5000,
        }
        return Window(**{**values, **changes})

    def claim(self, **changes: Any) -> list[Intent]:
        return journal.claim(self.hold, self.window(**changes), actor=ACTOR).intents

    def step(self, intent: Intent, *events: Event, **change: Any) -> Intent:
        """Take the events one after the other; the last gets the extra fields."""
        for event in events[:-1]:
            self.record(Change(intent.pk, event))
        return self.record(Change(intent.pk, events[-1], **change))

    def record(self, *changes: Change, **how: Any) -> Intent:
        done = journal.record(
            changes, actor=ACTOR, at=datetime.now(UTC), **{"hold": self.hold, **how}
        )
        return done[-1].intent

    def in_flight(self, symbol: str = "BTC/USDT", **changes: Any) -> Intent:
        intent = self.submit(symbol, **changes)
        return next(item for item in self.claim() if item.pk == intent.pk)


def trade(name: str, quantity: str = "1", price: str = "100", side: str = "buy") -> TradeReport:
    return TradeReport(
        venue_trade_id=name,
        venue_order_id="o1",
        symbol="BTC/USDT",
        side=side,
        quantity=Decimal(quantity),
        price=Decimal(price),
        fee=Decimal("0.1"),
        fee_currency="USDT",
        at_venue_ms=1_700_000_000_000,
    )


def make_world() -> World:
    settings = VenueSettings(
        "main", "binance", ("BTC/USDT", "ETH/USDT"), SecretText("k"), SecretText("s")
    )
    accounts.sync({"main": settings})
    account = Account.objects.get(name="main")
    taken = journal.take(account.pk, owner="test", at=datetime.now(UTC))
    assert taken is not None
    hold, recovery_due = taken
    assert recovery_due
    recovered(hold)
    btc, eth = account.markets.order_by("symbol")
    return World(account, hold, btc, eth)


@pytest.fixture
def world(db: None) -> World:
    return make_world()


def ago(seconds: float) -> datetime:
    return datetime.now(UTC) - timedelta(seconds=seconds)
