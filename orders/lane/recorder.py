"""Writes what happened: one transaction for all that has arrived meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import structlog
from django.db import InterfaceError, OperationalError, close_old_connections

from orders import journal
from orders.journal import Change, Done, Halt, LeaseLostError
from orders.lane import points
from orders.lane.context import Lane
from orders.machine import Event, Note

log = structlog.get_logger(__name__)

RETRY_S = 0.2
MOST = 200  # changes in one transaction
_AWAY = (OperationalError, InterfaceError)  # the database will be back
_KNOWN = {Event.ACCEPTED, Event.FOUND}  # whoever saw it: such an order is never absent


@dataclass(slots=True)
class _Job:
    changes: tuple[Change, ...]
    halts: tuple[Halt, ...]
    done: asyncio.Future[list[Done]]


class GroupRecorder:
    """Jobs that wait while a transaction runs are written together in the next one.

    A database that is away is asked again until it is back or the lane ends: an answer of the venue
    is not thrown away. Where the lease is lost, what the venue said is still kept, as evidence.
    """

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self._waiting: list[_Job] = []
        self._arrived = asyncio.Event()

    async def write(self, *changes: Change, halts: Iterable[Halt] = ()) -> list[Done]:
        """Durable on return. Raises LeaseLostError, or what made this change impossible."""
        job = _Job(changes, tuple(halts), asyncio.get_running_loop().create_future())
        self._waiting.append(job)
        self._arrived.set()
        return await job.done

    @property
    def idle(self) -> bool:
        return not self._waiting

    async def run(self) -> None:
        """Write until cancelled; what waits then, or is in hand, is told so."""
        jobs: list[_Job] = []
        try:
            while True:
                await self._arrived.wait()
                self._arrived.clear()
                while self._waiting:
                    jobs = self._take()
                    await self._write_jobs(jobs)
        finally:
            for job in [*jobs, *self._waiting]:
                _fail(job, LeaseLostError("the lane has ended"))

    def _take(self) -> list[_Job]:
        jobs, count = [], 0
        while self._waiting and count < MOST:
            jobs.append(self._waiting.pop(0))
            count += len(jobs[-1].changes)
        return jobs

    async def _write_jobs(self, jobs: Sequence[_Job]) -> None:
        changes = [change for job in jobs for change in job.changes]
        halts = [halt for job in jobs for halt in job.halts]
        try:
            done = await self._record(changes, halts)
        except LeaseLostError as error:
            await self._keep_evidence(changes)
            for job in jobs:
                _fail(job, error)
        except Exception as error:
            if len(jobs) == 1:
                _fail(jobs[0], error)
                return
            for job in jobs:  # one bad change must not hold the others back
                await self._write_jobs([job])
        else:
            self._lane.book.keep(item.intent for item in done)
            for change in changes:
                points.reach(change.event.value)
            for job in jobs:
                mine, done = done[: len(job.changes)], done[len(job.changes) :]
                if not job.done.done():
                    job.done.set_result(mine)

    async def _record(self, changes: Sequence[Change], halts: Sequence[Halt]) -> list[Done]:
        lane = self._lane
        while True:
            try:
                return await lane.database.run(
                    lambda: journal.record(
                        changes,
                        actor=lane.actor,
                        at=lane.clock.now(),
                        hold=lane.hold,
                        halts=halts,
                    )
                )
            except _AWAY as error:
                log.error("journal_unavailable", account=lane.account.name, error=str(error))
                await lane.database.run(close_old_connections)
                await lane.clock.sleep(RETRY_S)

    async def _keep_evidence(self, changes: Sequence[Change]) -> None:
        """A fact is a fact whoever saw it; only the owner may change a state by it."""
        lane = self._lane
        notes = [
            Change(
                change.intent_id,
                Note.EVIDENCE,
                reason=f"seen after the lease was lost: {change.event.value}; {change.reason}",
                evidence=change.evidence,
                columns={"known": True} if _shows_it_exists(change) else {},
            )
            for change in changes
            if change.evidence
        ]
        if not notes:
            return
        try:
            await lane.database.run(
                lambda: journal.record(notes, actor=lane.actor, at=lane.clock.now())
            )
        except Exception:
            log.exception("evidence_not_kept", notes=[note.intent_id for note in notes])


def _shows_it_exists(change: Change) -> bool:
    return change.event in _KNOWN or bool(change.columns.get("known"))


def _fail(job: _Job, error: Exception) -> None:
    if not job.done.done():
        job.done.set_exception(error)
