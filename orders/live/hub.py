"""Follows the journal for one web process and tells every open page what changed.

One thread reads, renders and hands out. It serves joins, snapshots and frames in one order, so
every browser on a page shows the same rows, and a change is rendered once for each role.
"""

from __future__ import annotations

import queue
import threading
import time
from dataclasses import dataclass, field
from typing import Protocol

import structlog
from django.db import connections
from django.utils.html import format_html

from orders.clock import SYSTEM
from orders.live import pages, regions
from orders.live.pages import Changes, NoSuchPageError, PageName
from orders.live.regions import Regions
from orders.queries import board
from orders.queries.journal import Tail, position
from orders.queries.pages import LivePage
from orders.roles import Role
from orders.wake import Watcher

log = structlog.get_logger(__name__)

FRAME_S = 0.1  # at most ten frames a second
PULSE_S = 1.0
GAP_S = 0.05  # how soon to ask again for a row that commits late
RETRY_S = 0.5
MOST_PAGES_READ = 20  # of the journal, in one frame


@dataclass(frozen=True, slots=True)
class Frame:
    """What one browser gets at once. A snapshot stands by itself; a change needs all before it."""

    messages: tuple[str, ...]
    whole: bool = False


class Viewer(Protocol):
    """One open page. `offer` is called from the hub's thread and never blocks."""

    page: PageName
    role: Role

    def offer(self, frame: Frame) -> None: ...

    def gone(self) -> None:
        """What the page shows does not exist: close it."""
        ...


@dataclass(slots=True)
class _Open:
    """A page that somebody looks at."""

    shown: LivePage
    regions: Regions
    viewers: set[Viewer] = field(default_factory=set)


class Hub:
    """Runs its threads only while somebody looks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._viewers: set[Viewer] = set()
        self._asked: queue.SimpleQueue[Viewer] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def join(self, viewer: Viewer) -> None:
        """A snapshot comes soon, and every change after it until `leave`."""
        with self._lock:
            self._viewers.add(viewer)
            self._asked.put(viewer)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="live-hub", daemon=True)
                self._thread.start()
        self._wake.set()

    def refresh(self, viewer: Viewer) -> None:
        """Ask for a new snapshot, after frames were lost."""
        self._asked.put(viewer)
        self._wake.set()

    def leave(self, viewer: Viewer) -> None:
        with self._lock:
            self._viewers.discard(viewer)
        self._wake.set()

    def wait_idle(self, timeout_s: float) -> bool:
        """Wait until the threads have ended, which they do when the last viewer has left."""
        thread = self._thread
        if thread is not None:
            thread.join(timeout_s)
        return thread is None or not thread.is_alive()

    def _run(self) -> None:
        watcher = Watcher(self._wake.set)
        watcher.start()
        try:
            while not self._ended():
                try:
                    self._follow()
                except Exception as error:
                    # The pages go stale by themselves, and catch up when the database is back.
                    log.exception("live_view_failed", error=str(error))
                    connections.close_all()
                    self._wake.wait(RETRY_S)
        finally:
            watcher.stop()
            watcher.join()
            connections.close_all()

    def _ended(self) -> bool:
        with self._lock:
            if self._viewers:
                return False
            self._thread = None
            return True

    def _follow(self) -> None:
        """Serve until nobody looks any more. Starts from nothing: every viewer gets a snapshot."""
        desk = _Desk()
        self._take_asked()
        for viewer in self._present():
            desk.show(viewer)
        while self._present():
            began = time.monotonic()
            self._wake.clear()
            desk.keep(self._present())
            for viewer in self._take_asked():
                desk.show(viewer)
            if desk.frame():
                time.sleep(max(0.0, FRAME_S - (time.monotonic() - began)))
            desk.pulse()
            self._wake.wait(desk.patience_s())

    def _present(self) -> set[Viewer]:
        with self._lock:
            return set(self._viewers)

    def _take_asked(self) -> list[Viewer]:
        """Who waits for a snapshot and has not left."""
        asked = []
        while True:
            try:
                asked.append(self._asked.get_nowait())
            except queue.Empty:
                present = self._present()
                return [viewer for viewer in asked if viewer in present]


class _Desk:
    """What the open pages show, and the place in the journal up to which they show it."""

    def __init__(self) -> None:
        self._tail = Tail(position())
        self._open: dict[PageName, _Open] = {}
        self._pulse_at = 0.0

    def show(self, viewer: Viewer) -> None:
        """Send the page whole. Whoever joins later shows the same rows as who came first."""
        opened = self._open.get(viewer.page)
        try:
            if opened is None:
                shown = pages.load(viewer.page, SYSTEM.now())
                opened = self._open[viewer.page] = _Open(shown, pages.regions(shown))
        except NoSuchPageError:
            viewer.gone()
            return
        opened.viewers.add(viewer)
        whole = regions.snapshot(opened.regions, viewer.role)
        viewer.offer(Frame((*whole, self._position()), whole=True))

    def keep(self, viewers: set[Viewer]) -> None:
        """Forget who left, and the pages that nobody looks at."""
        for page, opened in list(self._open.items()):
            opened.viewers &= viewers
            if not opened.viewers:
                del self._open[page]

    def frame(self) -> bool:
        """Send what changed since the last frame. Returns whether anything may have."""
        changes = self._read()
        pulse = time.monotonic() >= self._pulse_at
        if not changes and not pulse:
            return False
        now = SYSTEM.now()
        status = board.status(now)
        for page, opened in self._open.items():
            mine = Changes(
                changes.everything, set(changes.markets), set(changes.intents), changes.alerts
            )
            if pulse:  # something in flight becomes doubt by time alone
                mine.markets |= pages.aging(opened.shown)
            shown = pages.reload(page, opened.shown, mine, status, now)
            self._send(opened, shown)
        return bool(changes)

    def pulse(self) -> None:
        """Say that this is still true, once a second."""
        if time.monotonic() < self._pulse_at:
            return
        self._pulse_at = time.monotonic() + PULSE_S
        frame = Frame((self._position(),))
        for opened in self._open.values():
            for viewer in opened.viewers:
                viewer.offer(frame)

    def patience_s(self) -> float:
        until_pulse = max(0.0, self._pulse_at - time.monotonic())
        return min(until_pulse, GAP_S) if self._tail.waits else until_pulse

    def _read(self) -> Changes:
        changes = Changes()
        for _ in range(MOST_PAGES_READ):
            lines = self._tail.read()
            if not lines:
                return changes
            changes.add(lines)
        # Too far behind to go line by line: what the pages show now is read anew.
        self._tail = Tail(position())
        changes.everything = True
        return changes

    def _send(self, opened: _Open, shown: LivePage) -> None:
        before, opened.shown = opened.regions, shown
        opened.regions = pages.regions(shown)
        for role in {viewer.role for viewer in opened.viewers}:
            messages = regions.changes(before, opened.regions, role)
            if not messages:
                continue
            frame = Frame((*messages, self._position()))
            for viewer in opened.viewers:
                if viewer.role is role:
                    viewer.offer(frame)

    def _position(self) -> str:
        """How far the page is, and the server's time when it was."""
        return format_html(
            '<data id="position" hx-swap-oob="true" value="{}" data-at="{}" hidden></data>',
            self._tail.after,
            round(SYSTEM.now().timestamp() * 1000),
        )


HUB = Hub()
