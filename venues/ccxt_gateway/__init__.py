"""Gateways by way of ccxt: the only place that imports it."""

from __future__ import annotations

import time

from venues.ccxt_gateway.gateway import CcxtGateway
from venues.gateway import Gateway, VenueSettings
from venues.profiles import profile_of

__all__ = ["CcxtGateway", "gateway_for"]


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


def gateway_for(settings: VenueSettings) -> Gateway:
    """The gateway of an account. Raises KeyError for an exchange without a profile.

    Nothing is opened before the first call of a coroutine, so any thread may make one.
    """
    return CcxtGateway(settings, profile_of(settings.exchange), wall_ms=_wall_ms)
