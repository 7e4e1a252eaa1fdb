"""An event loop with virtual time. Its tasks belong to processes, which can crash and freeze."""

from __future__ import annotations

import asyncio
import contextvars
import heapq
from collections import deque
from collections.abc import Callable
from itertools import count
from typing import Any

PROCESS: contextvars.ContextVar[Process | None] = contextvars.ContextVar("process", default=None)


class Process:
    """What dies or stands still at once: the tasks that were started in its context.

    A crash runs no clean-up: what waits is never resumed. A frozen process is resumed where it
    stood, with everything that has become due meanwhile.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.alive = True
        self.frozen = False
        self.starved = False  # of its renewals
        self.steps = 0
        self.crash_at_step = 0
        self.freeze_at_step = 0
        self.calls = 0  # of the journal
        self.sends = 0  # of create requests
        self.crash_at_send = 0
        self.freeze_at_send = 0
        self.crash_before_call = 0
        self.crash_after_call = 0
        self.on_crash: Callable[[Process], None] = lambda _: None
        self.on_freeze: Callable[[Process], None] = lambda _: None
        self.context = contextvars.Context()
        self.context.run(PROCESS.set, self)
        self._held: list[Handle] = []

    def crash(self) -> None:
        if self.alive:
            self.alive = False
            self.on_crash(self)

    def admit(self, handle: Handle) -> bool:
        """Whether the step may run now. Crashes and freezes happen here, between two awaits."""
        if not self.alive:
            return False
        self.steps += 1
        if self.steps == self.crash_at_step:
            self.crash()
            return False
        if self.steps == self.freeze_at_step and not self.frozen:
            self.on_freeze(self)
        if self.frozen:
            self._held.append(handle)
            return False
        return True

    def wake(self) -> list[Handle]:
        self.frozen = False
        held, self._held = self._held, []
        return held


class Handle:
    """A step that waits to be run: `asyncio.Handle` without what debugging needs."""

    __slots__ = ("args", "callback", "context", "dropped")

    def __init__(self, callback: Callable[..., object], args: Any, context: Any) -> None:
        self.callback, self.args = callback, args
        self.context = contextvars.copy_context() if context is None else context
        self.dropped = False

    def cancel(self) -> None:
        self.dropped = True

    def cancelled(self) -> bool:
        return self.dropped


class _Task(asyncio.Task[Any]):
    """Its hash is a number of its own, so that sets of tasks have the same order in every run."""

    _numbers = count(1)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._number = next(_Task._numbers)
        super().__init__(*args, **kwargs)
        self._log_destroy_pending = False

    def __hash__(self) -> int:
        return self._number


class VirtualLoop(asyncio.BaseEventLoop):
    """Runs what is ready; when nothing is, time jumps to the next timer."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        self._ready: deque[Handle] = deque()
        self._timers: list[tuple[float, int, Handle]] = []
        self._numbers = count()
        self._tasks: list[_Task] = []
        self._world = contextvars.Context()
        self._stopped = False
        self.errors: list[dict[str, Any]] = []
        _Task._numbers = count(1)

    # ---- what asyncio needs of a loop

    def time(self) -> float:
        return self._now

    def get_debug(self) -> bool:
        return False

    def __del__(self) -> None:
        """Nothing is open that would have to be closed."""

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> Handle:
        handle = Handle(callback, args, context)
        self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> Handle:
        handle = Handle(callback, args, context)
        heapq.heappush(self._timers, (when, next(self._numbers), handle))
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> Handle:
        return self.call_at(self._now + max(delay, 0.0), callback, *args, context=context)

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, *, name: object = None, context: Any = None) -> Any:
        task = _Task(coro, loop=self, name=name, context=context)
        self._tasks.append(task)
        return task

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.errors.append(context)

    # ---- what the simulation adds

    def later(self, delay: float, callback: Callable[..., object], *args: Any) -> None:
        """Call it outside of every process: the network, the venue and people outlive a crash."""
        self.call_at(self._now + max(delay, 0.0), callback, *args, context=self._world)

    def wake(self, process: Process) -> None:
        self._ready.extend(process.wake())

    def stop(self) -> None:
        self._stopped = True

    def run(self, until: float) -> None:
        """Run until `stop` or the instant."""
        asyncio.events._set_running_loop(self)
        try:
            while not self._stopped and self._now <= until:
                if not self._ready and not self._jump():
                    return
                self._step(self._ready.popleft())
        finally:
            asyncio.events._set_running_loop(None)

    def _jump(self) -> bool:
        while self._timers:
            when, _, handle = heapq.heappop(self._timers)
            if not handle.dropped:
                self._now = max(self._now, when)
                self._ready.append(handle)
                return True
        return False

    def _step(self, handle: Handle) -> None:
        if handle.dropped:
            return
        process = handle.context.get(PROCESS)
        if process is None or process.admit(handle):
            try:
                handle.context.run(handle.callback, *handle.args)
            except Exception as error:
                self.call_exception_handler({"handle": handle, "exception": error})

    def drop(self) -> None:
        """Unwind what still waits. Only after the run: its clean-up must not count."""
        for task in self._tasks:
            if task.done():
                continue
            coro = task.get_coro()
            for _ in range(20):
                try:
                    coro.close()
                except BaseException:
                    continue
                break
        self._tasks.clear()
        self._ready.clear()
        self._timers.clear()


async def forever() -> Any:
    """What a crashed process waits for."""
    await asyncio.get_running_loop().create_future()
