"""A journal with every kind of row in it, and people who would like to read it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from orders import intake, journal, tokens
from orders.clock import SYSTEM
from orders.intake import Decision
from orders.journal import AlertDraft, Change, Window
from orders.machine import Event, Note
from orders.models import Account, Intent, Lease, Market
from orders.roles import Role
from tests.support.lane import recovered
from venues.gateway import TradeReport

HOSTILE = "<script>alert(1)</script>"


def add_orders(count: int) -> None:
    """Orders with a line for each step, a fill and an alert."""
    market = Market.objects.get()
    now = datetime.now(UTC)
    decisions = [
        Decision(
            account="main",
            strategy="breakout",
            symbol="BTC/USDT",
            side="buy",
            type="market",
            quantity="1",
            decided_at=now - timedelta(milliseconds=Intent.objects.count() + number),
        )
        for number in range(count)
    ]
    intake.submit_many(decisions, actor="token:bot")
    taken = journal.take(market.account_id, owner="lane-1", at=SYSTEM.now())
    assert taken
    hold, _ = taken
    recovered(hold)
    window = Window(limit=500, at=SYSTEM.now(), offset_ms=0, expiry_ms=3000, timeout_ms=5000)
    intents = journal.claim(hold, window, actor="lane:lane-1").intents
    changes = [change for intent in intents for change in _execution(intent)]
    journal.record(changes, actor="lane:lane-1", at=SYSTEM.now(), hold=hold)
    journal.release(hold, clean=True, at=SYSTEM.now())
    for intent in intents:
        _alert(intent)


def _execution(intent: Intent) -> list[Change]:
    trade = TradeReport(
        venue_trade_id=f"t{intent.pk}",
        venue_order_id=f"v{intent.pk}",
        symbol="BTC/USDT",
        side="buy",
        quantity=Decimal(1),
        price=Decimal("61250.1"),
        fee=Decimal("0.001"),
        fee_currency="BTC",
        at_venue_ms=1_767_225_600_000,
    )
    return [
        Change(
            intent.pk,
            Event.ACCEPTED,
            evidence={"body": HOSTILE, "status": 200},
            columns={"venue_order_id": f"v{intent.pk}"},
        ),
        Change(intent.pk, Note.FILL, fills=(trade,), columns={"venue_filled": Decimal(1)}),
        Change(intent.pk, Event.FILLED),
    ]


def _alert(intent: Intent) -> None:
    draft = AlertDraft(
        kind="orphan",
        topic=f"orphan:{intent.pk}",
        severity="warning",
        message=HOSTILE,
        remedy="look",
        account_id=intent.account_id,
        intent_id=intent.pk,
    )
    journal.raise_alert(draft, actor="lane:lane-1", at=SYSTEM.now())


@pytest.fixture
def records(transactional_db: None) -> None:
    account = Account.objects.create(name="main", exchange="binance")
    Lease.objects.create(account=account)
    Market.objects.create(account=account, symbol="BTC/USDT", base="BTC", quote="USDT")
    tokens.create("bot", Role.TRADER)
    add_orders(3)


def signed_in(name: str, role: Role | None, *, superuser: bool = False) -> Client:
    user = User.objects.create_user(name, password="x" * 20, is_superuser=superuser)
    if role:
        user.groups.add(Group.objects.get_or_create(name=role.value)[0])
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def administrator(records: None) -> Client:
    return signed_in("ada", Role.ADMINISTRATOR)
