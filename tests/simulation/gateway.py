"""`venues.gateway.Gateway` over the simulated network; answers go through the real table."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from random import Random

from tests.simulation.clocks import MachineClock
from tests.simulation.loop import Process
from tests.simulation.network import RESET, Network
from tests.simulation.venue import Reply, Venue
from venues.gateway import (
    CancelAnswer,
    ClockReading,
    ConnectError,
    Evidence,
    Look,
    MarketInfo,
    OrderReport,
    OrderSpec,
    Permit,
    PermitUsedError,
    PlaceAnswer,
    VenueSettings,
)
from venues.outcome import Answer, OrderName, classify
from venues.profiles import Rung

TIMED_OUT = Reply(status=0, message="no answer in time")
SentHook = Callable[[Process, Permit], None]


class Stream:
    """The pushes that reached this process."""

    def __init__(self) -> None:
        self._queue: deque[OrderReport] = deque()
        self._arrived = asyncio.Event()

    def put(self, report: OrderReport) -> None:
        self._queue.append(report)
        self._arrived.set()

    def __aiter__(self) -> AsyncIterator[OrderReport]:
        return self

    async def __anext__(self) -> OrderReport:
        while not self._queue:
            self._arrived.clear()
            await self._arrived.wait()
        return self._queue.popleft()


class SimulatedGateway:
    """One account, as one process reaches it."""

    def __init__(
        self,
        settings: VenueSettings,
        process: Process,
        clock: MachineClock,
        network: Network,
        venue: Venue,
        random: Random,
        sent: SentHook,
    ) -> None:
        self.settings, self.profile = settings, venue.plan.profile
        self._process, self._clock, self._network = process, clock, network
        self._venue, self._random, self._sent = venue, random, sent
        self._streams: list[Stream] = []

    async def connect(self) -> Sequence[MarketInfo]:
        reply = await self._ask("markets", self._venue.time)
        if reply.status != 200 or not reply.whole:
            raise ConnectError(f"markets: {reply.status} {reply.message}")
        return [
            MarketInfo(symbol, base=symbol.partition("/")[0], quote=symbol.partition("/")[2])
            for symbol in self.settings.symbols
        ]

    async def clock(self) -> ClockReading | None:
        asked_ms, began = self._clock.now_ms(), self._clock.monotonic()
        reply = await self._ask("time", self._venue.time)
        if reply.status != 200 or not reply.whole:
            return None
        half_ms = (self._clock.monotonic() - began) * 1000 / 2
        return ClockReading(reply.venue_ms - asked_ms - half_ms, half_ms, int(asked_ms))

    async def place(self, order: OrderSpec, permit: Permit) -> PlaceAnswer:
        await self._connecting()
        if self._clock.monotonic() >= permit.send_before_monotonic_s:
            return self._placed(order, permit, Reply(message="too late to send"), sent=False)
        permit.use()
        reply = await self._create(order, permit)
        if reply is RESET:  # a library would send once more; the permit forbids it
            try:
                permit.use()
            except PermitUsedError:
                pass
            else:
                reply = await self._create(order, permit)
        return self._placed(order, permit, reply, sent=True)

    async def _create(self, order: OrderSpec, permit: Permit) -> Reply:
        self._sent(self._process, permit)
        if not self._process.alive or self._process.frozen:
            await asyncio.sleep(0)  # stopped between the check and the send
        return await self._ask(
            f"create {permit.client_order_id}#{permit.attempt}",
            lambda: self._venue.place(
                order, permit.client_order_id, permit.claimed_venue_ms, permit.expires_venue_ms
            ),
            self._venue.true_s(permit.expires_venue_ms),
        )

    async def _connecting(self) -> None:
        """Connecting may take its time, and whole processes stop meanwhile."""
        await asyncio.sleep(self._random.choice((0.0, 0.001, 0.01)))

    def _placed(self, order: OrderSpec, permit: Permit, reply: Reply, *, sent: bool) -> PlaceAnswer:
        ours = OrderName(permit.client_order_id, order.symbol, order.side)
        report = reply.reports[0] if reply.reports and reply.whole else None
        answer = Answer(
            sent=sent,
            ours=ours,
            status=reply.status or None,
            whole=reply.whole and reply.status not in (0, 504),
            code=reply.code,
            message=reply.message,
            venue_order_id=report.venue_order_id if report else "",
            returned=OrderName(report.client_order_id, report.symbol, report.side)
            if report
            else None,
        )
        outcome, why = classify(answer, "binance")
        self._network.tell(
            self._process.name,
            f"answer to {permit.client_order_id}#{permit.attempt}: {outcome.value}",
        )
        return PlaceAnswer(
            outcome,
            self._evidence("create_order", reply, sent=sent),
            report,
            reply.message or why,
            self._limited(reply),
        )

    async def cancel(
        self, symbol: str, client_order_id: str, venue_order_id: str | None
    ) -> CancelAnswer:
        reply = await self._ask(
            f"cancel {client_order_id}",
            lambda: self._venue.cancel(symbol, client_order_id, venue_order_id),
        )
        good = reply.status == 200 and reply.whole
        return CancelAnswer(
            done=good,
            evidence=self._evidence("cancel_order", reply),
            report=reply.reports[0] if good else None,
            message=reply.message,
            limited_until_desk_ms=self._limited(reply),
        )

    async def look(
        self,
        rung: Rung,
        symbol: str,
        *,
        client_order_id: str = "",
        venue_order_id: str = "",
        since_venue_ms: int | None = None,
    ) -> Look:
        reply = await self._ask(
            f"look {rung.value} {client_order_id or venue_order_id or symbol}",
            lambda: self._looked(
                rung, symbol, client_order_id, venue_order_id, since_venue_ms or 0
            ),
        )
        absent = reply.status == 400 and reply.code == "-2013"
        return Look(
            rung,
            answered=reply.whole and (reply.status == 200 or absent),
            evidence=self._evidence(f"look:{rung.value}", reply),
            reports=reply.reports if reply.whole else (),
            trades=reply.trades if reply.whole else (),
            complete=reply.complete,
            limited_until_desk_ms=self._limited(reply),
        )

    def _looked(self, rung: Rung, symbol: str, client_id: str, venue_id: str, since: int) -> Reply:
        before = self._random.random() < 0.5
        if before:
            self._venue.looked(symbol)
        reply = self._venue.look(rung, symbol, client_id, venue_id, since)
        if not before:
            self._venue.looked(symbol)
        return reply

    def stream(self) -> AsyncIterator[OrderReport] | None:
        if not self.profile.stream:
            return None
        stream = Stream()
        self._streams.append(stream)
        self._network.streams.append(stream.put)
        return stream

    async def close(self) -> None:
        for stream in self._streams:
            self._network.streams.remove(stream.put)
        self._streams.clear()

    async def _ask(self, what: str, act: Callable[[], Reply], expires_s: float = 0.0) -> Reply:
        try:
            async with asyncio.timeout(self.settings.timeout_ms / 1000):
                asked = f"{self._process.name} {what}"
                return await self._network.send(asked, act, expires_s)
        except TimeoutError:
            return TIMED_OUT

    def _limited(self, reply: Reply) -> int | None:
        if reply.limited_s is None or not reply.whole:
            return None
        return int(self._clock.now_ms() + reply.limited_s * 1000) + 1

    def _evidence(self, call: str, reply: Reply, *, sent: bool = True) -> Evidence:
        error = reply.message if not reply.status else ""
        return Evidence(
            call, call, sent, int(self._clock.now_ms()), 0.0, reply.status or None, "", error
        )
