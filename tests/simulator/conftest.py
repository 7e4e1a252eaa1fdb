"""One simulator per test module, and a market of its own for every test."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from tests.simulator.wire import Wire
from tests.support.simulator import Simulator

_markets = count()


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
    """A market that no other test of the module uses; its price is 100 and a level holds 200."""
    return f"T{next(_markets) % 40 + 1:02}USDT"


@pytest.fixture
def wire(sim: Simulator) -> Iterator[Wire]:
    with Wire(sim) as wire:
        yield wire
