"""The HTTP session below ccxt. It sends a create request once, with a permit, or not at all.

Every request that reaches a socket passes `_OneShotRequest.send`, also one that aiohttp repeats
or redirects by itself, and there a second send of the same request is refused: GET and POST
alike. A create request moreover needs a permit that is unused, in time and made for the client
order ID that the request carries. What was sent and what came back is kept as a `Wire`.
"""

from __future__ import annotations

import json
import re
import ssl as ssl_module
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partialmethod
from typing import Any
from urllib.parse import parse_qsl, quote

import aiohttp
import yarl
from aiohttp.client_reqrep import ClientRequest
from aiohttp.connector import Connection

from venues.gateway import Permit, monotonic_s
from venues.profiles import Profile

SECRET_NAMES = frozenset(
    {"apikey", "api_key", "secret", "signature", "sign", "passphrase", "password"}
    | {"authorization", "token", "listenkey", "secretkey"}
)
_SECRET_TEXT = re.compile(
    rf"(?i)\b({'|'.join(sorted(SECRET_NAMES))})(\"?\s*[=:]\s*\"?)[^&\s\"',}}]+"
)
Fields = Sequence[tuple[str, Any]]  # the named values of a request
_READING = frozenset({"GET", "HEAD", "OPTIONS", "DELETE"})


class SendRefusedError(Exception):
    """A request was refused here, before any byte of it left."""


class RequestLostError(aiohttp.ClientConnectionError):
    """The connection broke. Of a class that aiohttp does not answer with a second try."""


@dataclass(slots=True)
class Wire:
    """One request and what came back. `sent` is False while it is certain that no byte left."""

    method: str
    path: str
    shown: str  # method, path and parameters without secrets
    create: bool
    permit: Permit | None = None
    sent: bool = False
    status: int | None = None
    retry_after: str = ""
    text: str = ""  # the raw answer, secrets and all
    whole: bool = False  # the body arrived to its end
    elapsed_ms: float = 0.0


@dataclass(slots=True)
class Recording:
    """The requests of one call, in order."""

    permit: Permit | None = None
    wires: list[Wire] = field(default_factory=list)

    @property
    def create(self) -> Wire | None:
        """The create request of the call that left; else the last that was to leave."""
        creates = [wire for wire in self.wires if wire.create]
        sent = [wire for wire in creates if wire.sent]
        return sent[-1] if sent else creates[-1] if creates else None

    @property
    def last(self) -> Wire | None:
        return self.wires[-1] if self.wires else None


_recording: ContextVar[Recording | None] = ContextVar("venue_recording", default=None)
_wire: ContextVar[Wire | None] = ContextVar("venue_wire", default=None)


@contextmanager
def recording(permit: Permit | None = None) -> Iterator[Recording]:
    """Keep the requests that this task makes meanwhile; with a permit, one create among them."""
    kept = Recording(permit)
    token = _recording.set(kept)
    try:
        yield kept
    finally:
        _recording.reset(token)


SHORTEST_SECRET = 6  # characters


def scrubber(secrets: Iterable[str]) -> Callable[[str], str]:
    """A function that takes these words, and whatever is named like a secret, out of a text."""
    # A word shorter than this protects nothing, and would be found in the middle of others.
    known = [word for word in secrets if len(word) >= SHORTEST_SECRET]
    words = sorted({*known, *(quote(word, safe="") for word in known)}, key=len, reverse=True)

    def scrub(text: str) -> str:
        for word in words:
            text = text.replace(word, "***")
        return _SECRET_TEXT.sub(r"\1\2***", text)

    return scrub


class _OneShotRequest(ClientRequest):
    """A request that reaches a socket at most once."""

    async def send(self, conn: Connection) -> aiohttp.ClientResponse:
        wire = _wire.get()
        if wire is None or wire.sent:
            raise SendRefusedError(f"{self.method} {self.url.path}: a second send of one request")
        if wire.create:
            _spend(wire)
        wire.sent = True
        return await super().send(conn)


def _spend(wire: Wire) -> None:
    """Use the permit up, right before the send. Connecting may have taken its time."""
    if wire.permit is None:
        raise SendRefusedError(f"{wire.method} {wire.path}: no permit")
    late_s = monotonic_s() - wire.permit.send_before_monotonic_s
    if late_s >= 0:
        raise SendRefusedError(f"{wire.method} {wire.path}: too late to send by {late_s:.3f} s")
    wire.permit.use()


async def _never_again(
    request: ClientRequest, handler: Callable[[ClientRequest], Any]
) -> aiohttp.ClientResponse:
    """aiohttp repeats a GET, PUT or DELETE whose connection dropped; this keeps it from that.

    Only for the answer's sake: `_OneShotRequest` would refuse the second send.
    """
    try:
        response: aiohttp.ClientResponse = await handler(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise RequestLostError(f"{type(error).__name__}: {error}") from error
    return response


class _Handshake:
    """ccxt enters it and never leaves, and closes the socket itself: so no generator here."""

    def __init__(self, session: OneShotSession, url: yarl.URL, options: dict[str, Any]) -> None:
        self._session, self._url, self._options = session, url, options
        self._socket: aiohttp.ClientWebSocketResponse | None = None

    async def __aenter__(self) -> aiohttp.ClientWebSocketResponse:
        self._socket = await self._session.shake_hands(self._url, self._options)
        return self._socket

    async def __aexit__(self, *exc: object) -> None:
        if self._socket is not None:
            await self._socket.close()


class OneShotSession:
    """What ccxt takes for an aiohttp session. Make it inside a running loop; close it."""

    def __init__(
        self,
        profile: Profile,
        *,
        secrets: Iterable[str] = (),
        ssl: ssl_module.SSLContext | bool = True,
    ) -> None:
        self._profile = profile
        self.scrub = scrubber(secrets)
        self._creates = tuple(_pattern(*endpoint) for endpoint in profile.create_endpoints)
        self._harmless = tuple(_pattern(*endpoint) for endpoint in profile.other_writes)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=ssl),
            cookie_jar=aiohttp.DummyCookieJar(),
            request_class=_OneShotRequest,
            middlewares=(_never_again,),
        )

    @asynccontextmanager
    async def request(
        self, method: str, url: str | yarl.URL, **options: Any
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send one request and read its whole answer. Raises SendRefusedError, PermitUsedError."""
        url = url if isinstance(url, yarl.URL) else yarl.URL(url, encoded=True)
        fields = _fields(url, options.get("data"))
        wire = self._note(method.upper(), url, fields)
        began = time.monotonic()
        token = _wire.set(wire)
        try:
            self._admit(wire, fields)
            options["allow_redirects"] = False
            async with self._session.request(method, url, **options) as response:
                wire.status = response.status
                wire.retry_after = response.headers.get("Retry-After", "")
                wire.text = await response.text(errors="replace")
                wire.whole = True
                wire.elapsed_ms = (time.monotonic() - began) * 1000
                yield response
        finally:
            if not wire.whole:
                wire.elapsed_ms = (time.monotonic() - began) * 1000
            _wire.reset(token)

    get = partialmethod(request, "GET")
    post = partialmethod(request, "POST")
    put = partialmethod(request, "PUT")
    patch = partialmethod(request, "PATCH")
    delete = partialmethod(request, "DELETE")
    head = partialmethod(request, "HEAD")

    def ws_connect(self, url: str, **options: Any) -> _Handshake:
        """Open a WebSocket, as an async context manager, like aiohttp's."""
        return _Handshake(self, yarl.URL(url, encoded=True), options)

    async def shake_hands(
        self, url: yarl.URL, options: dict[str, Any]
    ) -> aiohttp.ClientWebSocketResponse:
        """A handshake is a GET, so its path is checked like any other's."""
        wire = self._note("GET", url, _fields(url, None))
        token = _wire.set(wire)
        try:
            self._admit(wire, ())
            socket: aiohttp.ClientWebSocketResponse = await self._session.ws_connect(url, **options)
            return socket
        finally:
            _wire.reset(token)

    @property
    def closed(self) -> bool:
        return self._session.closed

    @property
    def headers(self) -> Mapping[str, str]:
        """Those that go with every request: none."""
        return self._session.headers

    @property
    def cookie_jar(self) -> aiohttp.abc.AbstractCookieJar:
        return self._session.cookie_jar

    async def close(self) -> None:
        await self._session.close()

    def _note(self, method: str, url: yarl.URL, fields: Fields) -> Wire:
        create = any(fits(method, url.path) for fits in self._creates)
        shown = "&".join(f"{k}={v}" for k, v in fields if k.lower() not in SECRET_NAMES)
        asked = f"{method} {url.path}?{shown}" if shown else f"{method} {url.path}"
        wire = Wire(method, url.path, self.scrub(asked), create)
        kept = _recording.get()
        if kept is not None:
            wire.permit = kept.permit if create else None
            kept.wires.append(wire)
        return wire

    def _admit(self, wire: Wire, fields: Fields) -> None:
        """Refuse what must not leave, before a connection is asked for."""
        name = f"{wire.method} {wire.path}"
        if not wire.create:
            known = wire.method in _READING or any(
                f(wire.method, wire.path) for f in self._harmless
            )
            if not known:
                raise SendRefusedError(
                    f"{name}: not among the requests that the profile of "
                    f"{self._profile.exchange} knows; add it to create_endpoints or other_writes"
                )
            return
        if wire.permit is None:
            raise SendRefusedError(f"{name}: an order request without a permit")
        wanted = wire.permit.client_order_id
        names = self._profile.client_id_fields
        carried = [str(value) for name, value in fields if name in names]
        if not wanted or set(carried) != {wanted}:
            raise SendRefusedError(
                f"{name}: carries the client order ID {carried or 'none'}, the permit is for "
                f"{wanted!r}"
            )


def _pattern(method: str, path: str) -> Callable[[str, str], bool]:
    """Whether a method and a path are this endpoint; {} stands for one segment."""
    parts = [re.escape(part) for part in path.rstrip("/").split("{}")]
    expression = re.compile("[^/]+".join(parts) + "/?")
    return lambda asked, at: asked == method and expression.fullmatch(at) is not None


def _text_of(data: Any) -> str:
    if isinstance(data, bytes | bytearray):
        return data.decode("utf-8", "replace")
    return data if isinstance(data, str) else ""


def _fields(url: yarl.URL, data: Any) -> Fields:
    """Every named value of the query and of a form or JSON body."""
    pairs: list[tuple[str, Any]] = parse_qsl(url.raw_query_string, keep_blank_values=True)
    body = _text_of(data)
    if body[:1] in ("{", "["):
        try:
            return pairs + list(_walk(json.loads(body)))
        except ValueError:
            return pairs
    return pairs + list(parse_qsl(body, keep_blank_values=True))


def _walk(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if isinstance(inner, Mapping | list):
                yield from _walk(inner)
            else:
                yield str(name), inner
    elif isinstance(value, list):
        for inner in value:
            yield from _walk(inner)
