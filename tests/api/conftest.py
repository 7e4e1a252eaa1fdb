"""A desk with two accounts, and callers with tokens."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client

from orders import tokens
from orders.models import Account, Lease, Market
from orders.roles import Role


def now_text() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


def decision(**changes: Any) -> dict[str, Any]:
    """A decision that is admitted as it stands."""
    return {
        "account": "main",
        "strategy": "breakout",
        "symbol": "BTC/USDT",
        "side": "buy",
        "type": "limit",
        "quantity": "0.25",
        "price": "61250.10",
        "decided_at": now_text(),
        **changes,
    }


@dataclass
class Caller:
    """A program with a token."""

    client: Client
    token: str

    def get(self, path: str, query: Any = None, **headers: str) -> Any:
        return self.client.get(f"/api/v1/{path}", query, headers=self._with(headers))

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        return self.client.post(
            f"/api/v1/{path}", body, content_type="application/json", headers=self._with(headers)
        )

    def _with(self, headers: dict[str, str]) -> dict[str, str]:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return {"Authorization": f"Bearer {self.token}", **named}


def add_market(account: str, symbol: str) -> Market:
    row, _ = Account.objects.get_or_create(name=account, defaults={"exchange": "binance"})
    Lease.objects.get_or_create(account=row)
    base, _, quote = symbol.partition("/")
    return Market.objects.create(account=row, symbol=symbol, base=base, quote=quote)


def caller(name: str, role: Role, **limits: Any) -> Caller:
    return Caller(Client(), tokens.create(name, role, **limits))


@pytest.fixture
def btc(transactional_db: None) -> Market:
    add_market("other", "BTC/USDT")
    add_market("main", "ETH/USDT")
    return add_market("main", "BTC/USDT")


@pytest.fixture
def trader(btc: Market) -> Caller:
    return caller("trader", Role.TRADER)


@pytest.fixture
def viewer(btc: Market) -> Caller:
    return caller("viewer", Role.VIEWER)


@pytest.fixture
def operator(btc: Market) -> Caller:
    return caller("operator", Role.OPERATOR)
