"""From the journal to the browser, inside one process: real hub, real consumer, real database."""

from __future__ import annotations

import queue
import re
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.contrib.auth.models import Group, User
from django.db import connections
from django.test import Client

from orders import operate
from orders.clock import SYSTEM
from orders.journal import AlertDraft, raise_alert
from orders.live import consumer as consumer_module
from orders.live.consumer import MOST_FRAMES, Connection
from orders.live.hub import HUB, Frame, Hub
from orders.live.pages import NoSuchPageError, PageName
from orders.machine import Event
from orders.models import Market
from orders.roles import Role
from tests.journal.conftest import World

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]

WITHIN_S = 10.0


class Reader:
    """A browser without a network: keeps what it is sent."""

    def __init__(self, page: PageName, role: Role = Role.OPERATOR) -> None:
        self.page = page
        self.role = role
        self.frames: queue.Queue[Frame] = queue.Queue()
        self.closed = False

    def offer(self, frame: Frame) -> None:
        self.frames.put(frame)

    def gone(self) -> None:
        self.closed = True

    def until(self, *words: str) -> str:
        """The text of the frames up to the one that completes the words."""
        text, deadline = "", time.monotonic() + WITHIN_S
        while not all(word in text for word in words):
            text += "\n".join(self.frames.get(timeout=deadline - time.monotonic()).messages)
        return text

    def snapshot(self) -> str:
        frame = self.frames.get(timeout=WITHIN_S)
        assert frame.whole
        return "\n".join(frame.messages)


@pytest.fixture
def hub() -> Iterator[Hub]:
    """A hub whose threads have ended before the database is emptied."""
    hub = Hub()
    yield hub
    for viewer in list(hub._viewers):
        hub.leave(viewer)
    assert hub.wait_idle(WITHIN_S)


def position(text: str) -> int:
    found = re.findall(r'id="position" hx-swap-oob="true" value="(\d+)"', text)
    return int(found[-1])


def test_a_page_gets_everything_first_and_then_only_what_changed(world: World, hub: Hub) -> None:
    first = world.submit("ETH/USDT")
    reader = Reader(PageName("board"))
    hub.join(reader)
    whole = reader.snapshot()
    assert f'id="market-{world.btc.pk}"' in whole
    assert f'id="market-{world.eth.pk}"' in whole
    assert f'id="intent-{first.pk}"' in whole
    intent = world.submit("BTC/USDT")
    change = reader.until(f'id="intent-{intent.pk}"', f'id="market-{world.btc.pk}"')
    assert '<tbody hx-swap-oob="afterbegin:#latest">' in change
    assert f'id="market-{world.eth.pk}"' not in change
    assert f'id="intent-{first.pk}"' not in change
    assert position(change) > position(whole)


def test_a_blocked_market_moves_up_and_back_down(world: World, hub: Hub) -> None:
    Market.objects.create(account=world.account, symbol="ADA/USDT")
    reader = Reader(PageName("board"))
    hub.join(reader)
    reader.snapshot()
    intent = world.step(world.in_flight("ETH/USDT"), Event.NO_ANSWER)
    row = f"market-{world.eth.pk}"
    change = reader.until("BLOCKED", "afterbegin:#markets")
    assert f'<tr id="{row}" hx-swap-oob="delete">' in change
    world.step(intent, Event.RECONCILE_STARTED, Event.FOUND)
    change = reader.until(f"afterend:#market-{world.btc.pk}")
    assert f'<tr id="{row}" hx-swap-oob="delete">' in change


def test_every_role_gets_its_own_buttons(world: World, hub: Hub) -> None:
    viewer = Reader(PageName("board"), Role.VIEWER)
    operator = Reader(PageName("board"), Role.OPERATOR)
    for reader in (viewer, operator):
        hub.join(reader)
    assert "/halt" not in viewer.snapshot()
    assert "/halt" in operator.snapshot()
    world.submit()
    row = f'id="market-{world.btc.pk}"'
    assert "/halt" not in viewer.until(row)
    assert "/halt" in operator.until(row)


def test_all_readers_of_a_page_and_role_get_the_very_same_frames(world: World, hub: Hub) -> None:
    readers = [Reader(PageName("board")) for _ in range(3)]
    for reader in readers:
        hub.join(reader)
        reader.snapshot()
    intent = world.submit()
    for reader in readers:
        reader.until(f'id="intent-{intent.pk}"')
    late = Reader(PageName("board"))
    hub.join(late)
    assert f'id="intent-{intent.pk}"' in late.snapshot()


def test_there_is_a_sign_of_life_each_second(world: World, hub: Hub) -> None:
    reader = Reader(PageName("desk"))
    hub.join(reader)
    reader.snapshot()
    beats = []
    for _ in range(3):
        frame = reader.frames.get(timeout=WITHIN_S)
        beats.append(time.monotonic())
        assert position("\n".join(frame.messages)) > 0
    assert 1.5 < beats[2] - beats[0] < 3


def test_what_is_in_flight_too_long_blocks_without_any_line_in_the_journal(
    world: World, hub: Hub
) -> None:
    world.account.timeout_ms = 300
    world.account.save()
    reader = Reader(PageName("board"))
    hub.join(reader)
    reader.snapshot()
    world.in_flight()
    reader.until('class="market BLOCKED"', "1 BLOCKED")


def test_the_pages_of_an_order_a_market_and_the_alerts_follow_too(world: World, hub: Hub) -> None:
    intent = world.submit()
    order = Reader(PageName("intent", intent.pk))
    market = Reader(PageName("market", world.btc.pk))
    alerts = Reader(PageName("alerts"))
    for reader in (order, market, alerts):
        hub.join(reader)
        reader.snapshot()
    world.step(world.claim()[0], Event.NO_ANSWER, reason="cut", evidence={"why": "reset"})
    change = order.until("UNKNOWN", "no_answer", "reset")
    assert 'hx-swap-oob="afterbegin:#journal"' in change
    market.until("BLOCKED", "no_answer", "Unresolved: what is not known")
    draft = AlertDraft("drift", "t", "critical", "Numbers differ", "Look", market_id=world.btc.pk)
    raise_alert(draft, actor="lane:x", at=SYSTEM.now())
    alerts.until("Numbers differ", "1 ALERT")
    market.until("Numbers differ")
    order.until("1 ALERT")


def test_a_page_of_nothing_is_closed(world: World, hub: Hub) -> None:
    reader = Reader(PageName("intent", 987654))
    hub.join(reader)
    deadline = time.monotonic() + WITHIN_S
    while not reader.closed and time.monotonic() < deadline:
        time.sleep(0.01)
    assert reader.closed
    for name, number in (("board", 1), ("market", 0), ("nonsense", 0)):
        with pytest.raises(NoSuchPageError):
            PageName(name, number)


def test_the_hub_rests_while_nobody_looks_and_starts_again(world: World) -> None:
    hub = Hub()
    for _ in range(3):
        reader = Reader(PageName("board"))
        hub.join(reader)
        reader.snapshot()
        hub.leave(reader)
        assert hub.wait_idle(WITHIN_S)


async def test_a_browser_that_reads_too_slowly_gets_a_snapshot_instead_of_a_hole(
    world: World,
) -> None:
    connection = Connection(PageName("board"), Role.VIEWER)
    for number in range(MOST_FRAMES):
        connection._put(Frame((str(number),)))
    assert connection.frames.qsize() == MOST_FRAMES
    connection._put(Frame(("one too many",)))
    connection._put(Frame(("and another",)))
    assert connection.frames.empty()  # nothing with a hole in it is ever sent
    connection._put(Frame(("whole",), whole=True))
    connection._put(Frame(("next",)))
    sent = [connection.frames.get_nowait() for _ in range(connection.frames.qsize())]
    assert [frame.messages for frame in sent if frame] == [("whole",), ("next",)]


# ---- through the WebSocket


@pytest.fixture
async def rested() -> AsyncIterator[None]:
    yield
    for viewer in list(HUB._viewers):  # of a test that failed
        HUB.leave(viewer)
    assert await sync_to_async(HUB.wait_idle)(WITHIN_S)
    await sync_to_async(connections.close_all)()  # of the thread that served the sockets


def cookie_of(role: str) -> str:
    user, _ = User.objects.get_or_create(username=role or "nobody")
    if role:
        user.groups.set([Group.objects.get(name=role)])
    client = Client()
    client.force_login(user)
    return client.cookies["sessionid"].value


class Socket:
    """A browser's WebSocket, on the whole application."""

    def __init__(self, path: str, session: str, origin: str) -> None:
        from orderdesk.asgi import application

        path, _, query = path.partition("?")
        scope = {
            "type": "websocket",
            "path": path,
            "query_string": query.encode(),
            "headers": [
                (b"origin", origin.encode()),
                (b"host", b"localhost"),
                (b"cookie", f"sessionid={session}".encode()),
            ],
            "subprotocols": [],
        }
        communicator: Any = ApplicationCommunicator  # comes without types
        self._application = communicator(application, scope)

    async def open(self) -> bool:
        await self._application.send_input({"type": "websocket.connect"})
        return str((await self.next())["type"]) == "websocket.accept"

    async def next(self) -> Any:
        return await self._application.receive_output(timeout=WITHIN_S)

    async def until(self, *words: str) -> str:
        text = ""
        while not all(word in text for word in words):
            text += (await self.next())["text"]
        return text

    async def end(self) -> Any:
        """What closes it, after whatever is sent before."""
        while (output := await self.next())["type"] == "websocket.send":
            pass
        return output

    async def close(self) -> None:
        await self._application.send_input({"type": "websocket.disconnect", "code": 1001})
        await self._application.wait(timeout=WITHIN_S)


async def connect(path: str, session: str = "", origin: str = "http://localhost") -> Socket:
    socket = Socket(path, session, origin)
    assert await socket.open()
    return socket


async def test_a_signed_in_viewer_gets_the_snapshot(world: World, rested: None) -> None:
    socket = await connect("/ws/board", await sync_to_async(cookie_of)("viewer"))
    assert "BTC/USDT" in await socket.until("position")
    await socket.close()


@pytest.mark.parametrize("role", [None, ""], ids=["signed out", "without a role"])
async def test_who_may_not_look_is_closed_out(world: World, role: str | None, rested: None) -> None:
    session = "" if role is None else await sync_to_async(cookie_of)(role)
    socket = await connect("/ws/board", session)
    assert (await socket.end())["code"] == 4403
    await socket.close()


@pytest.mark.parametrize("path", ["/ws/intent?id=999999", "/ws/intent", "/ws/board?id=x", "/ws/no"])
async def test_a_page_that_does_not_exist_is_closed(world: World, path: str, rested: None) -> None:
    socket = await connect(path, await sync_to_async(cookie_of)("viewer"))
    assert (await socket.end())["code"] == 4404
    await socket.close()


async def test_a_page_of_another_origin_cannot_connect(world: World, rested: None) -> None:
    session = await sync_to_async(cookie_of)("viewer")
    assert not await Socket("/ws/board", session, "http://evil.example").open()


async def test_an_open_page_closes_when_its_session_ends(
    world: World, rested: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumer_module, "CHECK_RIGHTS_S", 0.05)
    session = await sync_to_async(cookie_of)("viewer")
    socket = await connect("/ws/board", session)
    client = Client()
    client.cookies["sessionid"] = session
    await sync_to_async(client.post)("/sign-out")
    assert (await socket.end())["code"] == 4403
    await socket.close()


async def test_a_halt_by_hand_reaches_the_browser(world: World, rested: None) -> None:
    socket = await connect("/ws/board", await sync_to_async(cookie_of)("operator"))
    halt = sync_to_async(operate.halt)
    await halt(world.btc.pk, actor="user:ann", reason="drill")
    await socket.until("1 HALTED")
    await socket.close()
