"""Starts and stops a simulator."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from dataclasses import dataclass, replace
from random import Random

import uvloop
from aiohttp import web

from venues.profiles import UsedId
from venues.simulator.binance.rest import Binance
from venues.simulator.clock import Clock
from venues.simulator.exchange import Exchange, Rules
from venues.simulator.faults import Plan
from venues.simulator.ledger import Ledger
from venues.simulator.server import Handler, State
from venues.simulator.streams import Streams

DEFAULT_SECRET = "simulator-secret"  # noqa: S105  it opens a simulator, nothing else


@dataclass(frozen=True, slots=True)
class Options:
    """How one simulator behaves.

    port 0 takes a free one. still: prices move only by POST /_price. keys: the API keys that are
    known, empty for any. secret: what every key signs with.
    """

    host: str = "127.0.0.1"
    port: int = 0
    used_id: UsedId = UsedId.UNIQUE_WHILE_OPEN
    honour_expiry: bool = True
    seed: int = 0
    still: bool = False
    tick_ms: int = 200
    keys: frozenset[str] = frozenset()
    secret: str = DEFAULT_SECRET


@dataclass(slots=True)
class Running:
    """A simulator that accepts connections at `url`."""

    url: str
    port: int
    state: State
    _runner: web.ServerRunner
    _ticker: asyncio.Task[None] | None

    async def stop(self) -> None:
        """Close every connection at once. Idempotent."""
        if self._ticker is not None:
            self._ticker.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._ticker
        self.state.streams.drop_all()
        await self._runner.cleanup()


def build(options: Options) -> State:
    """Put the parts together; nothing runs yet."""
    clock, plan = Clock(), Plan()
    rules = Rules(options.used_id, options.honour_expiry)
    exchange = Exchange(clock, options.seed, replace(rules))
    streams = Streams(plan)
    exchange.listeners.append(streams.push)
    return State(
        clock=clock,
        exchange=exchange,
        plan=plan,
        ledger=Ledger(exchange),
        streams=streams,
        dialect=Binance(exchange, streams, options.secret, options.keys),
        coin=Random(options.seed),
        seed=options.seed,
        started_with=rules,
    )


async def start(options: Options | None = None) -> Running:
    """Listen, on the running event loop. Raises OSError where the port is taken."""
    options = options or Options()
    state = build(options)
    server = web.Server(Handler(state), access_log=None)
    runner = web.ServerRunner(server, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, options.host, options.port, backlog=1024)
    try:
        await site.start()
    except OSError:
        await runner.cleanup()
        raise
    port: int = runner.addresses[0][1]
    ticker = None if options.still else asyncio.create_task(_tick(state, options.tick_ms))
    return Running(f"http://{options.host}:{port}", port, state, runner, ticker)


async def _tick(state: State, tick_ms: int) -> None:
    while True:
        await asyncio.sleep(tick_ms / 1000)
        state.exchange.tick()


async def _serve(options: Options) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    running = await start(options)
    # Programs that start a simulator read this line to learn the port.
    print(f"simulator listening on {running.url}", flush=True)  # noqa: T201
    await stopped.wait()
    await running.stop()


def serve(options: Options) -> None:
    """Run until SIGTERM or SIGINT, and print the address first."""
    uvloop.run(_serve(options))
