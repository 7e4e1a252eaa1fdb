"""Makes a ccxt client that does nothing by itself: no retry, no waiting, no second session."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import ccxt.async_support
import ccxt.pro

from venues.gateway import VenueSettings
from venues.profiles import Profile
from venues.transport import OneShotSession

STREAM_KEEP_ALIVE_MS = 10_000
# Merged over the account's options: the profile of an exchange is about these markets.
OPTIONS: dict[str, dict[str, Any]] = {
    # Measured on ccxt 4.5.90: with these, loading the markets asks for exchangeInfo alone.
    "binance": {
        "defaultType": "spot",
        "fetchMarkets": {"types": ["spot"]},
        "fetchCurrencies": False,
        "fetchMargins": False,
        "adjustForTimeDifference": False,
        "newOrderRespType": {"market": "FULL", "limit": "FULL"},
    },
}
# For every exchange; what safety needs is not for an account to change.
FORCED: dict[str, Any] = {"maxRetriesOnFailure": 0, "ws": {"keepAlive": STREAM_KEEP_ALIVE_MS}}

Message = dict[str, Any]


def open_client(
    settings: VenueSettings,
    profile: Profile,
    wall_ms: Callable[[], int],
    on_push: Callable[[Message], bool],
) -> tuple[Any, OneShotSession]:
    """A client and the session that it sends through. Needs a running loop."""
    library = ccxt.pro if profile.stream else ccxt.async_support
    client = _class_of(getattr(library, settings.exchange), on_push)(_config(settings))
    if settings.sandbox:
        client.set_sandbox_mode(True)
    if settings.base_url is not None:
        client.urls["api"] = _moved(client.urls["api"], settings.base_url)
    client.milliseconds = wall_ms
    # At debug level ccxt logs headers and bodies, keys and signatures included.
    client.logger.setLevel(logging.WARNING)
    client.open()
    secrets = (settings.api_key, settings.secret, settings.password)
    session = OneShotSession(profile, secrets=secrets, ssl=client.ssl_context)
    client.session = session
    return client, session


def _config(settings: VenueSettings) -> dict[str, Any]:
    options = OPTIONS.get(settings.exchange, {})
    merged = ccxt.Exchange.deep_extend(dict(settings.options), options, FORCED)
    return {
        "apiKey": str(settings.api_key),
        "secret": str(settings.secret),
        "password": str(settings.password),
        "enableRateLimit": False,
        "timeout": settings.timeout_ms,
        "number": str,
        "session": None,  # there is one of ours, made once the client is open
        "timeout_on_exit": 0,
        "options": merged,
    }


def _class_of(base: Any, on_push: Callable[[Message], bool]) -> Any:
    """ccxt's class, with our own ear at its stream.

    ccxt keeps the last state of an order only, so that of two executions in one read the first
    would be lost; and an exception in its handlers ends the reading for good, while the
    connection stays. So ccxt gets the answers to its requests only, no events, and where it
    fails at one the connection is broken and made anew.
    """

    class Client(base):  # type: ignore[misc]
        def handle_message(self, client: Any, message: Any) -> None:
            try:
                if not (isinstance(message, dict) and on_push(message)):
                    super().handle_message(client, message)
            except Exception as error:
                client.on_error(ccxt.NetworkError(f"{type(error).__name__}: {error}"))

    Client.__name__ = base.__name__
    return Client


def _moved(urls: Any, base_url: str) -> Any:
    """Every URL with another scheme and host, paths kept; WebSockets stay WebSockets."""
    if isinstance(urls, dict):
        return {name: _moved(url, base_url) for name, url in urls.items()}
    if not isinstance(urls, str):
        return urls
    target, old = urlsplit(base_url), urlsplit(urls)
    scheme = target.scheme
    if old.scheme in ("ws", "wss"):
        scheme = {"http": "ws", "https": "wss"}[target.scheme]
    return old._replace(scheme=scheme, netloc=target.netloc).geturl()
