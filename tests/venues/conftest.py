"""Gateways that talk to the simulator or to a raw server, closed when the test ends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import count
from typing import Any

import pytest

from tests.support.simulator import API_KEY, SECRET, Simulator
from venues.ccxt_gateway import CcxtGateway, gateway_for
from venues.gateway import Permit, SecretText, VenueSettings, monotonic_s

Connect = Callable[..., Any]  # async (url, **settings) -> CcxtGateway
_ids = count(1)
_markets = count()


def new_id() -> str:
    """A client order ID like the desk's own."""
    return f"t{next(_ids):017}"


async def until(state: Callable[[], object], within_s: float = 5.0) -> None:
    """Wait for a state, with a bound."""
    for _ in range(round(within_s / 0.01)):
        if state():
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"not reached within {within_s} s")


def permit_for(client_order_id: str, *, expiry_ms: int = 30_000, offset_ms: float = 0) -> Permit:
    now = int(time.time() * 1000 + offset_ms)
    return Permit(client_order_id, 1, now, now + expiry_ms, monotonic_s() + expiry_ms / 1000)


@pytest.fixture(scope="module")
def shared() -> Iterator[Simulator]:
    with Simulator() as simulator:
        yield simulator


@pytest.fixture
def sim(shared: Simulator) -> Iterator[Simulator]:
    """The module's simulator, as new."""
    shared.reset()
    yield shared
    shared.reset()


@pytest.fixture
def symbol() -> str:
    """A market of the simulator that no other test of the module uses; its price is 100."""
    return f"T{next(_markets) % 40 + 1:02}/USDT"


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """Make connected gateways."""
    opened: list[CcxtGateway] = []

    async def make(url: str, **settings: Any) -> CcxtGateway:
        given: dict[str, Any] = {"symbols": ("BTC/USDT",), "timeout_ms": 10_000, **settings}
        gateway = gateway_for(
            VenueSettings(
                account="main",
                exchange="binance",
                api_key=SecretText(API_KEY),
                secret=SecretText(SECRET),
                base_url=url,
                **given,
            )
        )
        assert isinstance(gateway, CcxtGateway)
        opened.append(gateway)
        await gateway.connect()
        return gateway

    yield make
    for gateway in opened:
        await gateway.close()
