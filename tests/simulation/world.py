"""One run: chaos first, then peace, in which everything must come to its end."""

from __future__ import annotations

import asyncio
import hashlib
import sys
import traceback
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from random import Random
from typing import Any, NoReturn

import structlog
from django.db import DatabaseError

from orders import intake, operate
from orders.intake import Decision, DecisionError, KeyReusedError
from orders.journal import LeaseLostError, RefusedError
from orders.lane.runner import Runner
from orders.machine import ACTIVE
from orders.models import Transition
from tests.simulation import check, speed
from tests.simulation.clocks import MachineClock
from tests.simulation.database import Connection, Server, Watcher
from tests.simulation.gateway import SimulatedGateway
from tests.simulation.loop import PROCESS, Process, VirtualLoop
from tests.simulation.network import Network
from tests.simulation.plan import ACCOUNT, SLEEPERS, SYMBOLS, Plan, plan_of, settings_of
from tests.simulation.venue import Venue
from venues.gateway import Gateway, Permit, VenueSettings

_KNOWN = (
    "SELECT client_order_id FROM orders_intent WHERE known"
    f" AND state IN ({', '.join(repr(state.value) for state in sorted(ACTIVE))})"
)
# Where nothing can be proven after a backup, what waits ends with its validity only.
_VALID_FOR_S = {"backup": (3, 5, 8), "slow refusals": (20, 60)}
Line = tuple[float, str, str]  # true time, who, what
PEACE_S = 60.0  # the longest that everything may take to end once faults have stopped
SETTLE_S = 0.5
SWEPT_S = 3.2  # until the lane has looked for orders that should not be there
_EXPECTED = (DatabaseError, TimeoutError, LeaseLostError)
QUIET_S = 0.3
MOST_VIOLATIONS = 10


@dataclass
class Outcome:
    """What one run showed."""

    seed: int
    violations: list[str]
    lines: list[Line]
    digest: str
    virtual_s: float
    counts: dict[str, int] = field(default_factory=dict)


class NoSignal:
    """The runner is told to stop by the world, not by a signal."""

    def start(self, loop: Any, stop: Any) -> None:
        self.stop = stop


class World:
    """All that happens in one seed."""

    def __init__(self, plan: Plan, random: Random) -> None:
        self.plan, self.random = plan, random
        self.loop = VirtualLoop()
        self.lines: list[Line] = []
        self.violations: list[str] = []
        self.peace = False
        self.hosts = [MachineClock(self.loop, offset) for offset in plan.offsets_s[:2]]
        venue_clock = MachineClock(self.loop, plan.offsets_s[3])
        self.database = Server(
            self.loop, MachineClock(self.loop, plan.offsets_s[2]), random, plan.faults
        )
        if plan.theme == "stale claims":
            self.database.other_stalls = 0.1
        self.network = Network(self.loop, plan, random, self.tell)
        self.venue = Venue(self.loop, plan, random, venue_clock, self.tell)
        self.venue.push = self.network.push
        self.settings = settings_of(plan.timeout_ms, plan.expiry_ms)
        self.decisions: dict[str, Decision] = {}  # by client order ID
        self.lives = 0
        self.down = self.restored = False  # down: no journal, so no lane
        self.processes: list[Process] = []
        self.runners: dict[str, Runner] = {}

    # ---- telling

    def tell(self, who: str, what: str) -> None:
        self.lines.append((round(self.loop.time(), 6), who, what))

    def violate(self, text: str) -> None:
        self.tell("CHECK", text)
        if text not in self.violations and len(self.violations) < MOST_VIOLATIONS:
            self.violations.append(text)

    # ---- the run

    def _log(self, _: object, method: str, event: MutableMapping[str, Any]) -> NoReturn:
        """What the desk logs is part of the story. An error that nobody expects is a violation."""
        words = " ".join(f"{name}={value}" for name, value in event.items() if name != "exc_info")
        process = PROCESS.get()
        who = process.name if process else "log"
        error = event.get("exc_info")
        if method == "exception":
            error = sys.exception()
        if isinstance(error, BaseException):
            words += f" {type(error).__name__}: {error}"
            if not isinstance(error, _EXPECTED):
                told = "".join(traceback.format_exception(error)[-3:])
                self.violate(f"unexpected error in {who}: {told}")
        self.tell(who, words)
        raise structlog.DropEvent

    def run(self) -> Outcome:
        structlog.configure(processors=[self._log], cache_logger_on_first_use=False)
        speed.poll_rarely(peace=False)
        self.database.raw.execute(
            "UPDATE orders_account SET timeout_ms = ?, request_expiry_ms = ?",
            (self.plan.timeout_ms, self.plan.expiry_ms),
        )
        intake.SYSTEM = operate.SYSTEM = self.hosts[0]  # type: ignore[attr-defined]
        for number in range(self.plan.lanes):
            self.loop.later(0.3 * number, self._start_lane, number)
        self._plan_people()
        self._plan_faults()
        self.loop.later(self.plan.chaos_s, self._make_peace)
        self.loop.run(until=self.plan.chaos_s + PEACE_S)
        if not self.peace or not self._is_over():
            self.violations += check.unfinished()
        self.violations += check.compare(self.venue, self.tell)
        for error in self.loop.errors:
            if "handle" not in error:
                continue  # a task's error that nobody asked for: the lane logs it itself
            self.violations.append(f"error in a callback: {error.get('exception')!r}")
        journal = _journal_lines(self.database.commits)
        structlog.configure(processors=[_drop])
        self.loop.drop()
        return Outcome(
            self.plan.seed,
            self.violations,
            sorted([*self.lines, *journal], key=lambda line: line[0]),
            _digest(self.lines, journal),
            self.loop.time(),
            {"orders": len(self.venue.orders), "transitions": len(journal)},
        )

    def _make_peace(self) -> None:
        self.tell("world", "peace: no more faults")
        speed.poll_rarely(peace=True)
        self.peace = self.network.peace = self.venue.peace = self.database.peace = True
        self.venue.limited_until = 0.0
        for process in self.processes:
            process.crash_at_step = process.freeze_at_step = 0
            process.crash_before_call = process.crash_after_call = 0
            process.crash_at_send = process.freeze_at_send = 0
            if process.frozen:
                self._wake(process)
        for order in self.venue.orders:
            if order.is_open:
                self.loop.later(self.random.uniform(0.05, 1.0), self.venue._go_on, order)
        self.loop.later(QUIET_S, self._look_for_end)

    def _look_for_end(self) -> None:
        if self._is_over():
            swept = self.plan.theme in ("late evidence", "backup")
            settle_s = SWEPT_S if swept else SETTLE_S
            self.loop.later(settle_s, self._stop_if_over, self._owner() if swept else ())
        else:
            self.loop.later(QUIET_S, self._look_for_end)

    def _owner(self) -> tuple[Any, ...]:
        """Who sweeps: the run waits until one lane has done so all the while."""
        row = self.database.raw.execute(
            "SELECT owner, epoch, recovered_at IS NOT NULL FROM orders_lease"
        )
        return tuple(row.fetchone())

    def _stop_if_over(self, owner: tuple[Any, ...]) -> None:
        swept = not owner or (owner == self._owner() and owner[0] and owner[2])
        if self._is_over() and swept:
            self.loop.stop()
        else:
            self._look_for_end()

    def _is_over(self) -> bool:
        return (
            not any(order.is_open for order in self.venue.orders)
            and not self.network.travelling
            and not check.unfinished()
        )

    # ---- lanes

    def _start_lane(self, number: int) -> None:
        if self.down:
            return
        self.lives += 1
        host = self.hosts[number % 2]
        process = Process(f"lane{number}.{self.lives}")
        process.on_crash = lambda dead: self._crashed(dead, number)
        process.on_freeze = self._freeze
        if not self.peace:
            self._plan_end(process)
        self.processes.append(process)

        def make_gateway(settings: VenueSettings) -> Gateway:
            return SimulatedGateway(
                settings, process, host, self.network, self.venue, self.random, self._sending
            )

        runner = process.context.run(
            lambda: Runner(
                {ACCOUNT: self.settings},
                make_gateway,
                host,
                NoSignal(),
                owner=process.name,
                make_database=lambda _: Connection(self.database, process),
                make_watcher=lambda woken: Watcher(self.database, process, woken),
            )
        )
        self.runners[process.name] = runner
        self.tell("world", f"{process.name} starts")
        task = self.loop.create_task(runner.run(), context=process.context)
        task.add_done_callback(
            lambda done: self._ended(process, number, done), context=self.loop._world
        )

    def _plan_end(self, process: Process) -> None:
        faults, random = self.plan.faults, self.random
        if random.random() < faults.crashes:
            kind = random.randrange(5)
            if kind == 0:
                process.crash_at_step = random.choice(
                    (random.randint(1, 60), random.randint(1, 500))
                )
            elif kind == 1:
                process.crash_before_call = random.randint(1, 40)
            elif kind == 2:
                process.crash_after_call = random.randint(1, 40)
            else:
                process.crash_at_send = random.randint(1, 3)
        if random.random() < faults.freezes:
            if random.random() < 0.5:
                process.freeze_at_step = random.randint(20, 500)
            else:
                process.freeze_at_send = random.randint(1, 3)

    def _crashed(self, process: Process, number: int) -> None:
        self.tell("world", f"{process.name} is killed")
        if self.down:
            return
        self.database.watchers = [
            watcher
            for watcher in self.database.watchers
            if watcher.__self__._process.alive  # type: ignore[attr-defined]
        ]
        self.loop.later(self.random.uniform(0.05, 2.0), self._start_lane, number)

    def _freeze(self, process: Process) -> None:
        process.frozen = True
        past_lease = self.plan.theme in SLEEPERS
        seconds = self.random.uniform(3.3, 5.0) if past_lease else self.random.uniform(0.2, 6.0)
        self.tell("world", f"{process.name} stands still for {seconds:.1f} s")
        self.loop.later(seconds, self._wake, process)

    def _wake(self, process: Process) -> None:
        if process.frozen:
            self.tell("world", f"{process.name} goes on")
            if self.plan.theme == "late owners" and not self.peace:
                process.crash_at_send = process.sends + 1
            self.loop.wake(process)

    def _ended(self, process: Process, number: int, task: asyncio.Task[str]) -> None:
        """A lane gave its leases back, or broke."""
        process.alive = False
        error = task.exception()
        if error is not None and not isinstance(error, DatabaseError):
            self.violate(f"{process.name} broke: {''.join(traceback.format_exception(error))}")
        self.tell("world", f"{process.name} has ended")
        self.loop.later(self.random.uniform(0.05, 0.5), self._start_lane, number)

    def _sending(self, process: Process, permit: Permit) -> None:
        """Write ahead: what leaves was recorded, with this attempt and this expiry."""
        self._interrupt(process)
        self.tell(process.name, f"sends {permit.client_order_id}#{permit.attempt}")
        row = self.database.raw.execute(
            "SELECT attempt FROM orders_intent WHERE client_order_id = ?", (permit.client_order_id,)
        ).fetchone()
        if row is None or row[0] < permit.attempt:
            self.violate(f"{permit.client_order_id}#{permit.attempt} left without its claim")

    def _interrupt(self, process: Process) -> None:
        """Crash or stand still with the permit spent, before the request leaves or just after."""
        process.sends += 1
        if process.sends == process.crash_at_send:
            if self.random.random() < 0.5:
                process.crash()
            else:
                self.loop.later(self.random.choice((0.0, 0.01, 0.3)), process.crash)
        if process.sends == process.freeze_at_send and process.alive and not process.frozen:
            self._freeze(process)

    # ---- people

    def _plan_people(self) -> None:
        random, plan = self.random, self.plan
        for number in range(plan.decisions):
            at = random.uniform(*self._when(plan))
            self.loop.later(at, self._decide, number)
        for _ in range(plan.cancels):
            self.loop.later(random.uniform(0.5, plan.chaos_s), self._cancel)
        for _ in range(plan.halts):
            self.loop.later(random.uniform(0.5, plan.chaos_s), self._halt)
        if random.random() < 0.2:
            self.loop.later(random.uniform(1.0, plan.chaos_s), self._reconcile)

    def _when(self, plan: Plan) -> tuple[float, float]:
        """When people decide: most themes need time for what comes of it."""
        if plan.theme == "slow refusals":  # shortly before the owner's lease is over
            return 3.0, 3.6
        return 0.2, plan.chaos_s * (0.9 if plan.theme == "late owners" else 0.5)

    def _decide(self, number: int) -> None:
        random = self.random
        kind = random.choice(("market", "market", "limit", "ioc"))
        if self.plan.theme == "moving orders":
            kind = "limit"
        decision = Decision(
            account=ACCOUNT,
            strategy="s",
            symbol=random.choice(SYMBOLS[: self.plan.symbols]),
            side=random.choice(("buy", "sell")),
            type="market" if kind == "market" else "limit",
            quantity=random.randint(1, 5),
            price=None if kind == "market" else 100,
            time_in_force="IOC" if kind == "ioc" else None,
            decided_at=self.hosts[0].now() - timedelta(milliseconds=random.randrange(300)),
            key=f"k{number}" if random.random() < 0.5 else "",
            valid_for_s=random.choice(_VALID_FOR_S.get(self.plan.theme, (3, 10, 20, 60))),
        )
        self._submit(decision)
        for _ in range(random.choice((0, 0, 1))):
            self.loop.later(random.choice((0.0, random.uniform(0, 3))), self._submit, decision)
        if decision.key and random.random() < 0.2:
            other = replace(decision, quantity=99)
            self.loop.later(random.uniform(0, 3), self._submit_other, other)

    def _submit(self, decision: Decision) -> None:
        if self.down:
            return
        try:
            intent = self.database.call(lambda: intake.submit(decision, actor="token:strategy"))
        except DecisionError as error:
            if error.code != "stale" and not self.restored:
                self.violate(f"a good decision was refused: {error}")
            return
        first = self.decisions.setdefault(intent.client_order_id, decision)
        if first is not decision and not self.restored:
            self.violate(f"two decisions share intent {intent.client_order_id}")
        self.tell("strategy", f"submits {intent.client_order_id}: {intent.state}")

    def _submit_other(self, decision: Decision) -> None:
        if self.down:
            return
        try:
            self.database.call(lambda: intake.submit(decision, actor="token:strategy"))
        except KeyReusedError:
            return
        except DecisionError as error:
            if error.code == "stale":
                return
        if not self.restored:  # a journal that was put back may not know the first one any more
            self.violate("a key was used for two decisions")

    def _cancel(self) -> None:
        rows = self.database.raw.execute("SELECT id FROM orders_intent ORDER BY id").fetchall()
        if rows:
            (pk,) = self.random.choice(rows)
            intent = self.database.call(lambda: operate.cancel(pk, actor="user:o"))
            self.tell("operator", f"cancels {intent.client_order_id}: {intent.state}")

    def _market(self) -> tuple[int, str]:
        rows = self.database.raw.execute("SELECT id, symbol FROM orders_market ORDER BY id")
        market_id, symbol = self.random.choice(rows.fetchall())
        return market_id, symbol

    def _halt(self) -> None:
        market_id, symbol = self._market()
        self.database.call(lambda: operate.halt(market_id, actor="user:o", reason="test"))
        self.tell("operator", f"halts {symbol}")
        self.loop.later(self.random.uniform(0.5, 3), self._resume, market_id)

    def _resume(self, market_id: int) -> None:
        try:
            self.database.call(lambda: operate.resume(market_id, actor="user:o", reason="test"))
            self.tell("operator", "resumes")
        except RefusedError as error:
            self.tell("operator", f"cannot resume: {error}")
            if not self.peace:
                self.loop.later(1.0, self._resume, market_id)

    def _reconcile(self) -> None:
        market_id, _ = self._market()
        self.database.call(lambda: operate.reconcile(market_id, actor="user:o"))

    # ---- faults of machines and of the venue

    def _plan_faults(self) -> None:
        random, plan, faults = self.random, self.plan, self.plan.faults
        for _ in range(faults.limits):
            self.loop.later(random.uniform(0.5, plan.chaos_s), self._limit)
        if faults.clock_step_s:
            for clock in (*self.hosts, self.database.clock):
                step = random.uniform(-faults.clock_step_s, faults.clock_step_s)
                self.loop.later(random.uniform(0, plan.chaos_s), clock.step, step)
        if plan.rules.vanishes:
            for _ in range(3):
                self.loop.later(random.uniform(0.5, plan.chaos_s * 0.7), self._vanish)
        if plan.theme in SLEEPERS:
            late_owner = plan.theme == "late owners"
            self.loop.later(random.uniform(0.3, 1.0) if late_owner else 0.9, self._put_to_sleep)
        if faults.restore is not None:
            self.loop.later(faults.restore[0], self._keep_image)
        if random.random() < 0.3:
            self.loop.later(random.uniform(0, plan.chaos_s), self._silence)
        if random.random() < 0.2:
            self.loop.later(random.uniform(0.5, plan.chaos_s), self._stop_lane)

    def _put_to_sleep(self) -> None:
        """Whoever owns the account falls asleep in a send, or does not get its renewals through."""
        (owner,) = self.database.raw.execute("SELECT owner FROM orders_lease").fetchone()
        for process in self.processes:
            if process.name == owner and process.alive:
                if self.plan.theme == "slow refusals":
                    process.starved = True
                    self.tell("world", f"{process.name} cannot renew its lease")
                else:
                    process.freeze_at_send = process.sends + 1

    def _keep_image(self) -> None:
        """A backup is made, and some time later it takes the journal's place."""
        image, lines = self.database.raw.serialize(), len(self.database.commits)
        restore = self.plan.faults.restore
        assert restore is not None
        self.loop.later(restore[1] - restore[0], self._lose_journal, image, lines)

    def _lose_journal(self, image: bytes, lines: int) -> None:
        """The desk goes down with its journal; the venue goes on."""
        self.down = True
        for process in self.processes:
            process.crash()
        self.tell("world", "the journal is lost")
        faults, profile = self.plan.faults, self.plan.profile
        pause_s = self.random.uniform(0.1, 1.0)
        if not faults.restore_told:  # until all that was under way has arrived, and is shown
            pause_s += (self.plan.expiry_ms + profile.visibility_lag_ms) / 1000 + 1.0
        self.loop.later(pause_s, self._put_back, image, lines)

    def _put_back(self, image: bytes, lines: int) -> None:
        if not self.plan.faults.restore_told and self.network.travelling:
            self.loop.later(0.5, self._put_back, image, lines)
            return
        self.database.put_back(image, lines)
        self.down, self.restored = False, True
        self.tell("world", "a backup of the journal is put back")
        if self.plan.faults.restore_told:
            self.database.call(lambda: operate.restored(1, actor="user:o", reason="backup"))
            self.tell("operator", "says that the journal came from a backup")
        for number in range(self.plan.lanes):
            self.loop.later(self.random.uniform(0.0, 0.3), self._start_lane, number)

    def _limit(self) -> None:
        self.venue.limited_until = self.loop.time() + self.random.uniform(0.2, 2.0)
        self.tell("venue", "asks to be left alone")

    def _silence(self) -> None:
        self.network.silent_until = self.loop.time() + self.random.uniform(0.5, 4.0)

    def _stop_lane(self) -> None:
        running = [p for p in self.processes if p.alive and not p.frozen]
        if running:
            process = self.random.choice(running)
            self.tell("world", f"{process.name} is asked to stop")
            process.context.run(self.runners[process.name].stop, "asked to stop")

    def _vanish(self) -> None:
        """The venue stops showing an order, but only one that the journal knows to exist."""
        rows = self.database.raw.execute(_KNOWN).fetchall()
        orders = [o for o in self.venue.orders if (o.client_order_id,) in rows]
        if orders and self.random.random() < self.plan.rules.vanishes:
            ends = self.loop.time() + self.random.choice((1.0, 6.0, 1000.0))
            self.venue.hide(self.random.choice(orders), ends)


def _journal_lines(commits: list[tuple[float, int | None]]) -> list[Line]:
    """The journal, each line at the true instant of its commit."""
    rows = Transition.objects.order_by("pk").values_list(
        "pk",
        "subject",
        "intent__client_order_id",
        "event",
        "to_state",
        "actor",
        "reason",
        "attempt",
    )
    lines, place = [], 1
    for pk, subject, name, event, state, actor, reason, attempt in rows:
        while place < len(commits) - 1 and (commits[place][1] or 0) < pk:
            place += 1
        what = f"{name or subject}{f'#{attempt}' if attempt else ''} {event}"
        lines.append((commits[place][0], "journal", f"{what} -> {state} by {actor}: {reason}"))
    return lines


def _digest(*parts: list[Line]) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _drop(*_: object) -> NoReturn:
    raise structlog.DropEvent


def simulate(seed: int, change: Callable[[Plan], Plan] = lambda plan: plan) -> Outcome:
    """One seed on a fresh journal (see `database.restore`); `change` bends its plan."""
    plan, random = plan_of(seed)
    return World(change(plan), random).run()
