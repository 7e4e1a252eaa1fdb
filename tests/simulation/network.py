"""What may happen to a request, to its answer, and to a push."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from random import Random

from tests.simulation.loop import VirtualLoop
from tests.simulation.plan import Plan
from tests.simulation.venue import Reply
from venues.gateway import OrderReport

RESET = Reply(status=0, message="connection lost")
GATEWAY_ERROR = Reply(504, message="<html>", whole=True)
# How often a kind of request is hit. Whole looks must have a chance, or nothing is ever proven.
SHARES = {"create": 2.0, "markets": 0.1, "time": 0.1, "look": 0.12}
OPENING_S = 0.5  # no faults yet: the first lane begins
FATES = (
    "lost before, hangs",
    "lost before, resets",
    "lost after, hangs",
    "lost after, resets",
    "half an answer",
    "error page after",
    "error page before",
    "error page, then executed",
)


class Network:
    """Carries requests to the venue and answers back. It outlives every process."""

    def __init__(
        self, loop: VirtualLoop, plan: Plan, random: Random, tell: Callable[[str, str], None]
    ) -> None:
        self.loop, self.plan, self.faults, self.random, self.tell = (
            loop,
            plan,
            plan.faults,
            random,
            tell,
        )
        self.peace = False
        self.streams: list[Callable[[OrderReport], None]] = []
        self.silent_until = 0.0
        self.travelling = 0  # create requests that have not arrived yet

    @property
    def out(self) -> bool:
        outage = self.faults.outage
        return bool(outage and outage[0] <= self.loop.time() < outage[1]) and not self.peace

    def _delay(self, kind: str = "") -> float:
        share = self.faults.slow * SHARES.get(kind, 1.0)
        if not self.peace and self.random.random() < share:
            return (
                self.random.uniform(0.0, 1.3)
                * max(self.plan.timeout_ms, self.plan.expiry_ms)
                / 1000
            )
        return self.random.uniform(0.001, 0.004)

    def _late(self, expires_s: float) -> float:
        """The worst instants for a request to arrive: shortly before its expiry, and just after.

        Where no expiry is honoured, any later one.
        """
        if not self.plan.profile.expiry:
            return self.random.uniform(0.3, 4.0) * self.plan.expiry_ms / 1000
        lag_s = self.plan.profile.visibility_lag_ms / 1000
        if self.plan.theme == "margin":
            at = expires_s + self.random.uniform(-1.0, 0.9) * self.faults.venue_jitter_s
        else:
            at = expires_s + self.random.uniform(-lag_s, 0.2 * lag_s)
        return max(at - self.loop.time(), 0.0)

    def _fate(self, what: str) -> str:
        """Creates fare worst: what they leave in doubt is what the search is about."""
        if self.peace or self.loop.time() < OPENING_S:
            return ""
        if self.out:
            return self.random.choice(FATES[:2])
        kind = what.split()[1]
        share = self.faults.lost * SHARES.get(kind, 1.0)
        if self.random.random() >= min(share, 0.85):
            return ""
        if kind == "create" and self.plan.theme == "slow refusals":
            return FATES[2]
        if kind == "create" and self.random.random() < 0.6:
            return FATES[-1]
        return self.random.choice(FATES)

    def send(
        self, what: str, act: Callable[[], Reply], expires_s: float = 0.0
    ) -> asyncio.Future[Reply]:
        """One request. The future may stay open for ever: the caller has a time-out.

        expires_s: true time from which on the venue refuses it.
        """
        answer: asyncio.Future[Reply] = self.loop.create_future()
        fate = self._fate(what)
        if fate:
            self.tell("network", f"{what}: {fate}")
        delay = self._delay(what.split()[1])
        if self._refusing(what) and self.random.random() < 0.5:
            delay = self.random.uniform(1.0, 3.5) * self.plan.expiry_ms / 1000
        if fate in FATES[:2] or fate == "error page before":
            if fate != FATES[0]:
                reply = RESET if fate == FATES[1] else GATEWAY_ERROR
                self.loop.later(delay, _give, answer, reply)
            return answer
        if fate == "error page, then executed":
            self.loop.later(delay, _give, answer, GATEWAY_ERROR)
            delay += self._late(expires_s)
        if what.split()[1] == "create":
            self.travelling += 1
        self.loop.later(delay, self._arrive, what, act, answer, fate)
        return answer

    def _arrive(
        self, what: str, act: Callable[[], Reply], answer: asyncio.Future[Reply], fate: str
    ) -> None:
        if what.split()[1] == "create":
            self.travelling -= 1
        reply = act()
        if fate == "lost after, hangs":
            return
        reply = {
            "lost after, resets": RESET,
            "half an answer": replace(reply, whole=False),
            "error page after": GATEWAY_ERROR,
        }.get(fate, reply)
        delay = self._delay(what.split()[1])
        if self._refusing(what):
            delay = self.random.uniform(0.0, 0.4) * self.plan.timeout_ms / 1000
        self.loop.later(delay, _give, answer, reply)

    def _refusing(self, what: str) -> bool:
        return self.plan.theme == "slow refusals" and not self.peace and what.split()[1] == "create"

    def push(self, report: OrderReport) -> None:
        """Lost, late, twice, or nothing for a while."""
        for stream in self.streams:
            if not self.peace:
                if self.loop.time() < self.silent_until or self.out:
                    continue
                if self.random.random() > self.plan.rules.pushes:
                    continue
            copies = 2 if self.random.random() < 0.1 and not self.peace else 1
            for _ in range(copies):
                self.loop.later(self._delay(), stream, report)


def _give(answer: asyncio.Future[Reply], reply: Reply) -> None:
    if not answer.done():
        answer.set_result(reply)
