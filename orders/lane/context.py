"""What the parts of one account's lane share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, TypeVar

import structlog

from orders import journal
from orders.clock import Clock
from orders.journal import Done, Hold
from orders.lane.limiter import Limiter
from orders.machine import ACTIVE, State
from orders.models import Account, Intent
from venues.gateway import ClockReading, Gateway

log = structlog.get_logger(__name__)
T = TypeVar("T")


class Database(Protocol):
    """Runs blocking journal code outside the event loop."""

    async def run(self, call: Callable[[], T]) -> T: ...

    def close(self) -> None: ...


class ThreadDatabase:
    """One thread, so one connection: the calls run one after the other."""

    def __init__(self, name: str) -> None:
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)

    async def run(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, call)

    def close(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)


class VenueClock:
    """The venue's clock as we know it, carried on by the monotonic clock, which never steps."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._venue_ms: float | None = None
        self._uncertainty_ms = 0.0
        self._read_at = 0.0

    def learn(self, reading: ClockReading, asked_at: float) -> None:
        """`asked_at` is the monotonic clock right before the reading was asked for.

        Wall time counts only inside the reading: a step of ours afterwards changes nothing.
        """
        self._venue_ms = reading.at_desk_ms + reading.offset_ms
        self._uncertainty_ms = reading.uncertainty_ms
        self._read_at = asked_at

    @property
    def known(self) -> bool:
        return self._venue_ms is not None

    @property
    def age_s(self) -> float:
        return self._clock.monotonic() - self._read_at

    def now_ms(self) -> float:
        """Raises RuntimeError before the first reading."""
        if self._venue_ms is None:
            raise RuntimeError("the venue's clock was never read")
        return self._venue_ms + self.age_s * 1000

    def at_least_ms(self) -> float:
        """A lower bound of the venue's clock."""
        return self.now_ms() - self._uncertainty_ms

    def at_most_ms(self) -> float:
        """An upper bound of the venue's clock."""
        return self.now_ms() + self._uncertainty_ms

    def offset_ms(self, wall: datetime) -> float:
        """Venue clock minus the given reading of ours."""
        return self.now_ms() - wall.timestamp() * 1000


class Book:
    """The account's intents that are not at their end, as the journal last said."""

    def __init__(self) -> None:
        self._intents: dict[int, Intent] = {}
        self._by_client_id: dict[str, int] = {}
        self._locks: dict[int, asyncio.Lock] = {}

    def keep(self, intents: Iterable[Intent]) -> None:
        for intent in intents:
            known = self._intents.get(intent.pk)
            if known is not None and known.version > intent.version:
                continue
            self._intents[intent.pk] = intent
            self._by_client_id[intent.client_order_id] = intent.pk
            if State(intent.state) not in ACTIVE:
                self._forget(intent)

    def _forget(self, intent: Intent) -> None:
        del self._intents[intent.pk]
        del self._by_client_id[intent.client_order_id]
        lock = self._locks.get(intent.pk)
        if lock is not None and not lock.locked():
            del self._locks[intent.pk]

    def get(self, intent_id: int) -> Intent | None:
        return self._intents.get(intent_id)

    def by_client_id(self, client_order_id: str) -> Intent | None:
        intent_id = self._by_client_id.get(client_order_id)
        return None if intent_id is None else self._intents[intent_id]

    def lock(self, intent_id: int) -> asyncio.Lock:
        """Reports about one intent are digested one after the other."""
        return self._locks.setdefault(intent_id, asyncio.Lock())

    def having(self, *states: State) -> list[Intent]:
        return [intent for intent in self._intents.values() if State(intent.state) in states]


class Recorder(Protocol):
    async def write(self, *changes: Any, halts: Iterable[Any] = ()) -> list[Done]: ...


@dataclass
class Lane:
    """One account, while its lease is held."""

    account: Account
    hold: Hold
    gateway: Gateway
    clock: Clock
    database: Database
    deadline: Callable[[], float]  # the lease's end, monotonic seconds, as the owner counts it
    recorder: Recorder = field(init=False)
    book: Book = field(default_factory=Book)
    limiter: Limiter = field(init=False)
    venue_clock: VenueClock = field(init=False)
    limited_until: datetime | None = None
    stopping: bool = False
    ending: bool = False  # it cleans up: whoever wants it to end leaves it alone now
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    sends: set[asyncio.Task[None]] = field(default_factory=set)
    nudges: dict[int, asyncio.Event] = field(default_factory=dict)  # by market: look now

    def __post_init__(self) -> None:
        profile = self.gateway.profile
        self.limiter = Limiter(
            self.clock, profile.orders_per_10s, 10.0, profile.requests_per_minute, 60.0
        )
        self.venue_clock = VenueClock(self.clock)
        self.limited_until = self.account.limited_until

    @property
    def actor(self) -> str:
        return f"lane:{self.hold.owner}"

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Run beside the lane; a failure is logged and never silent."""
        task = asyncio.create_task(work, name=f"{self.account.name}:{name}")
        self.tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        self.sends.discard(task)
        self.wake.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("lane_task_failed", task=task.get_name(), exc_info=error)

    @property
    def limited(self) -> bool:
        """Whether the venue asked to be left alone."""
        return self.limited_until is not None and self.limited_until > self.clock.now()

    async def learn_clock(self) -> bool:
        """Compare clocks; True where the venue answered."""
        asked_at = self.clock.monotonic()
        reading = await self.gateway.clock()
        if reading is None:
            return False
        self.venue_clock.learn(reading, asked_at)
        return True

    def note_limit(self, until_desk_ms: int | None) -> None:
        """Ask the venue nothing until then."""
        if until_desk_ms is not None:
            until = datetime.fromtimestamp(until_desk_ms / 1000, UTC)
            self.limited_until = max(until, self.limited_until or until)

    async def heed(self, until_desk_ms: int | None) -> None:
        """Remember a rate limit or a ban on disk too: its end outlives this lane."""
        if until_desk_ms is None:
            return
        self.note_limit(until_desk_ms)
        until = datetime.fromtimestamp(until_desk_ms / 1000, UTC)
        await self.database.run(
            lambda: journal.set_limit(self.hold, until=until, at=self.clock.now())
        )

    async def wait_limit(self) -> None:
        """Sleep until the venue may be asked again, or the lane is told to stop."""
        while self.limited_until is not None and self.limited and not self.stopping:
            left = self.limited_until - self.clock.now()
            await self.clock.sleep(min(left / timedelta(seconds=1), 1.0) + 0.001)

    async def sleep_unless_nudged(self, market_id: int, seconds: float) -> None:
        """Sleep, or less where somebody asks to look at this market now."""
        nudge = self.nudges.setdefault(market_id, asyncio.Event())
        waits = {
            asyncio.ensure_future(self.clock.sleep(seconds)),
            asyncio.ensure_future(nudge.wait()),
        }
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
