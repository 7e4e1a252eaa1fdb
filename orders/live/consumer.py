"""One WebSocket: checks who looks, sends the snapshot and the frames, and never falls behind."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import parse_qs

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.contrib.auth import get_user_model

from orders.live.hub import HUB, Frame
from orders.live.pages import NoSuchPageError, PageName
from orders.roles import Right, Role, allows, role_of

FORBIDDEN = 4403
NOT_FOUND = 4404
MOST_FRAMES = 32  # waiting for one browser; more, and it gets a snapshot instead
CHECK_RIGHTS_S = 60.0


class Connection:
    """A viewer whose frames wait in a bounded queue. Lives on the event loop; the hub calls in."""

    def __init__(self, page: PageName, role: Role) -> None:
        self.page = page
        self.role = role
        self.frames: asyncio.Queue[Frame | None] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._behind = False

    def offer(self, frame: Frame) -> None:
        self._call(self._put, frame)

    def gone(self) -> None:
        self._call(self._put, None)

    def _call(self, method: Any, frame: Frame | None) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(method, frame)

    def _put(self, frame: Frame | None) -> None:
        if frame is None or frame.whole:
            self._drop_all()
            self._behind = False
        elif self._behind:
            return
        elif self.frames.qsize() >= MOST_FRAMES:
            # A lost frame would be a lost row: start over from a snapshot.
            self._drop_all()
            self._behind = True
            HUB.refresh(self)
            return
        self.frames.put_nowait(frame)

    def _drop_all(self) -> None:
        while not self.frames.empty():
            self.frames.get_nowait()


class LiveConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]
    """`/ws/PAGE?id=N`. Closes with 4403 for who may not look, 4404 for what does not exist."""

    connection: Connection | None = None
    tasks: tuple[asyncio.Task[None], ...] = ()

    async def connect(self) -> None:
        # A close code reaches the browser only on a connection that was accepted.
        await self.accept()
        role = await database_sync_to_async(_current_role)(self.scope)
        if role is None:
            await self.close(FORBIDDEN)
            return
        try:
            page = _page(self.scope)
        except NoSuchPageError:
            await self.close(NOT_FOUND)
            return
        self.connection = Connection(page, role)
        HUB.join(self.connection)
        self.tasks = (
            asyncio.create_task(self._send_frames(self.connection)),
            asyncio.create_task(self._watch_rights(role)),
        )

    async def disconnect(self, code: int) -> None:
        if self.connection is not None:
            HUB.leave(self.connection)
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def _send_frames(self, connection: Connection) -> None:
        while (frame := await connection.frames.get()) is not None:
            for message in frame.messages:
                await self.send(text_data=message)
        await self.close(NOT_FOUND)

    async def _watch_rights(self, role: Role) -> None:
        """A page that stays open must not outlive its reader's session or rights."""
        while True:
            await asyncio.sleep(CHECK_RIGHTS_S)
            if await database_sync_to_async(_current_role)(self.scope) is not role:
                await self.close(FORBIDDEN)
                return


def _page(scope: dict[str, Any]) -> PageName:
    name = scope["url_route"]["kwargs"]["page"]
    given = parse_qs(scope["query_string"].decode("ascii", "replace")).get("id", ["0"])[0]
    if not given.isascii() or not given.isdigit() or len(given) > 18:
        raise NoSuchPageError(f"{name} {given}")
    return PageName(name, int(given))


def _current_role(scope: dict[str, Any]) -> Role | None:
    """Read anew: the role of a user whose session still stands; None for who may not look."""
    session, user = scope["session"], scope["user"]
    if not user.is_authenticated or not session.exists(session.session_key):
        return None
    role = role_of(get_user_model().objects.filter(pk=user.pk).first() or user)
    return role if allows(role, Right.VIEW) else None
