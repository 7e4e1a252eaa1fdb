"""One request per create, whatever aiohttp, the venue or ccxt would like."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import aiohttp
import pytest

from tests.venues.rawserver import RawServer, Turn, answer, half, hang_up
from venues.gateway import Permit, PermitUsedError, monotonic_s
from venues.profiles import PROFILES
from venues.transport import OneShotSession, SendRefusedError, Wire, recording, scrubber

ID = "aaaabbbbccccdddd01"
PATH = "/api/v3/order"
# A venue that creates by GET too, as deribit does, and by JSON.
BOTH = replace(
    PROFILES["binance"],
    create_endpoints=(("POST", PATH), ("GET", "/private/{}"), ("POST", "/batch/{}/orders")),
)
FORM = f"symbol=BTCUSDT&newClientOrderId={ID}&signature=abc"
OK = answer(200, {"orderId": 1})


def permit(client_order_id: str = ID, left_s: float = 30.0) -> Permit:
    return Permit(client_order_id, 1, 0, 3000, monotonic_s() + left_s)


@pytest.fixture
async def session() -> AsyncIterator[OneShotSession]:
    session = OneShotSession(BOTH, secrets=["my-secret"])
    yield session
    await session.close()


async def call(
    session: OneShotSession, server: RawServer, method: str, path: str, **options: Any
) -> int:
    async with session.request(method, server.url + path, **options) as response:
        return response.status


async def create(
    session: OneShotSession, server: RawServer, given: Permit | None, body: str = FORM
) -> tuple[Wire, BaseException | None]:
    with recording(given) as kept:
        try:
            await call(session, server, "POST", PATH, data=body.encode())
            error = None
        except (aiohttp.ClientError, SendRefusedError, PermitUsedError) as raised:
            error = raised
    assert kept.create is not None
    return kept.create, error


async def test_a_create_with_a_permit_is_sent_once_and_uses_it_up(session: OneShotSession) -> None:
    async with RawServer(OK) as server:
        given = permit()
        wire, error = await create(session, server, given)
        assert error is None
        assert given.used
        assert (wire.sent, wire.whole, wire.status) == (True, True, 200)
        wire, error = await create(session, server, given)
        assert isinstance(error, PermitUsedError)
        assert not wire.sent
        assert len(server.requests) == 1


async def test_without_a_permit_nothing_leaves(session: OneShotSession) -> None:
    async with RawServer(OK) as server:
        wire, error = await create(session, server, None)
        assert isinstance(error, SendRefusedError)
        assert not wire.sent
        with pytest.raises(SendRefusedError, match="permit"):
            await call(session, server, "POST", PATH, data=FORM.encode())  # nobody records
        assert server.connections == 0


async def test_a_late_create_does_not_leave(session: OneShotSession) -> None:
    async with RawServer(OK) as server:
        given = permit(left_s=0.0)
        wire, error = await create(session, server, given)
        assert "too late" in str(error)
        assert not wire.sent
        assert not given.used
        assert server.requests == []


@pytest.mark.parametrize(
    "body",
    [
        "symbol=BTCUSDT",
        "symbol=BTCUSDT&newClientOrderId=",
        "symbol=BTCUSDT&newClientOrderId=other",
        f"newClientOrderId={ID}&newClientOrderId=other",
        f"clientOrderId={ID}",
        f'{{"newClientOrderId": "{ID}x"}}',
        f'[{{"newClientOrderId": "{ID}"}}, {{"newClientOrderId": "other"}}]',
        '{"newClientOrderId": broken',
    ],
)
async def test_a_create_without_exactly_our_id_does_not_leave(
    session: OneShotSession, body: str
) -> None:
    async with RawServer(OK) as server:
        wire, error = await create(session, server, permit(), body)
        assert isinstance(error, SendRefusedError)
        assert not wire.sent
        assert server.connections == 0


async def test_an_empty_id_is_not_ours_even_with_an_empty_permit(session: OneShotSession) -> None:
    async with RawServer(OK) as server:
        _, error = await create(session, server, permit(""), "newClientOrderId=")
        assert isinstance(error, SendRefusedError)
        assert server.connections == 0


async def test_the_id_is_found_in_json_and_in_the_query(session: OneShotSession) -> None:
    async with RawServer(OK, path="/batch/7/orders") as server:
        with recording(permit()):
            body = f'[{{"newClientOrderId": "{ID}"}}]'.encode()
            assert await call(session, server, "POST", "/batch/7/orders", data=body) == 200
    async with RawServer(OK, path="/private/buy") as server:
        with recording(permit()):
            assert await call(session, server, "GET", f"/private/buy?newClientOrderId={ID}") == 200


async def test_a_write_that_the_profile_does_not_know_is_refused(session: OneShotSession) -> None:
    async with RawServer(OK) as server:
        for method, path in (("POST", "/api/v9/order"), ("PUT", PATH), ("PATCH", "/x")):
            with pytest.raises(SendRefusedError, match="create_endpoints or other_writes"):
                await call(session, server, method, path)
        assert server.connections == 0


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_no_redirect_is_followed(session: OneShotSession, status: int) -> None:
    moved = answer(status, "", f"Location: {PATH}?again=1")
    async with RawServer(moved) as server:
        wire, error = await create(session, server, permit())
        assert error is None
        assert wire.status == status
        with recording():
            assert await call(session, server, "GET", PATH) == status
        assert len(server.requests) == 2


async def test_a_redirect_is_not_followed_even_when_asked_for(session: OneShotSession) -> None:
    async with RawServer(answer(307, "", f"Location: {PATH}")) as server:
        with recording(permit()):
            await call(session, server, "POST", PATH, data=FORM.encode(), allow_redirects=True)
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("method", "path", "options"),
    [
        ("POST", PATH, {"data": FORM.encode()}),
        ("GET", f"/private/buy?{FORM}", {}),
    ],
)
async def test_a_kept_connection_that_closes_after_reading_sees_one_create(
    session: OneShotSession, method: str, path: str, options: dict[str, Any]
) -> None:
    async with RawServer(OK, hang_up, path=path.partition("?")[0]) as server:
        with recording(permit()):
            await call(session, server, method, path, **options)
        with recording(permit()) as kept, pytest.raises(aiohttp.ClientConnectionError):
            await call(session, server, method, path, **options)
        assert [request.connection for request in server.requests] == [1, 1]  # it was reused
        assert kept.create is not None
        assert kept.create.sent
        assert not kept.create.whole


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_no_other_request_is_repeated_either(session: OneShotSession, method: str) -> None:
    async with RawServer(OK, hang_up) as server:
        await call(session, server, method, PATH)
        with pytest.raises(aiohttp.ClientConnectionError):
            await call(session, server, method, PATH)
        assert len(server.requests) == 2


async def test_aiohttp_would_have_repeated_the_get() -> None:
    """The trap that the tests above guard against is still there."""
    async with RawServer(OK, hang_up) as server, aiohttp.ClientSession() as plain:
        async with plain.get(server.url + PATH):
            pass
        with pytest.raises(aiohttp.ClientConnectionError):
            await plain.get(server.url + PATH)
        assert len(server.requests) == 3


async def test_a_second_send_is_refused_at_the_socket_itself(session: OneShotSession) -> None:
    """With the other guards taken away, as a change of aiohttp might, the last one holds."""
    inner = session._session
    inner._middlewares = ()
    async with RawServer(OK, hang_up, path="/private/buy") as server:
        for _ in range(2):
            with recording(permit()) as kept:
                try:
                    await call(session, server, "GET", f"/private/buy?{FORM}")
                except (aiohttp.ClientError, SendRefusedError) as error:
                    last = error
        assert isinstance(last, SendRefusedError)
        assert kept.create is not None
        assert kept.create.sent
        assert len(server.requests) == 2


async def test_a_refused_connection_is_known_as_not_sent(session: OneShotSession) -> None:
    async with RawServer(OK) as server:
        url = server.url
    with recording(permit()) as kept, pytest.raises(aiohttp.ClientConnectorError):
        async with session.post(f"{url}{PATH}", data=FORM.encode()):
            pass
    assert kept.create is not None
    assert not kept.create.sent


@pytest.mark.parametrize("turn", [hang_up, half(answer(200, {"orderId": 12345}))])
async def test_a_lost_or_half_answer_counts_as_sent_and_is_not_whole(
    session: OneShotSession, turn: Turn
) -> None:
    async with RawServer(turn) as server:
        wire, error = await create(session, server, permit())
        assert isinstance(error, aiohttp.ClientError)
        assert (wire.sent, wire.whole) == (True, False)


async def test_what_is_kept_names_no_secret(session: OneShotSession) -> None:
    async with RawServer(OK) as server:
        body = f"{FORM}&apiKey=my-key&x=my-secret"
        wire, _ = await create(session, server, permit(), body)
        assert wire.shown == f"POST {PATH}?symbol=BTCUSDT&newClientOrderId={ID}&x=***"
        for secret in ("abc", "my-key", "my-secret"):
            assert secret not in repr(wire.shown)


def test_a_scrubber_takes_out_what_is_secret_or_named_so() -> None:
    scrub = scrubber(["k3y-of-mine", "k", ""])
    assert scrub("k3y-of-mine signature=abc&a=1") == "*** signature=***&a=1"
    assert scrub("market") == "market"  # a word of one letter protects nothing
    assert scrub('{"listenKey": "xyz", "a": 1}') == '{"listenKey": "***", "a": 1}'
    assert scrub("Invalid API-key, IP, or permissions") == "Invalid API-key, IP, or permissions"
    assert scrubber(["abc/def"])("abc/def abc%2Fdef") == "*** ***"
    assert scrubber([])("nothing") == "nothing"
