"""The contract between the server and a dialect: one venue's wire format over the engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Protocol

from aiohttp import web

from venues.simulator.orders import Hide

JSON_TYPE = "application/json;charset=UTF-8"


@dataclass(slots=True)
class Call:
    """One request, read but not yet executed.

    `endpoint` is the name that faults and the ledger use: "create", "query", "cancel",
    "open_orders", "all_orders", "trades", "account", "time", or the last part of the path.
    """

    endpoint: str
    method: str
    path: str
    params: dict[str, str]
    symbol: str = ""
    client_order_id: str = ""
    payload: str = ""  # the text that was signed
    signature: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Answer:
    """What goes back. The last three are for the ledger, where the call was a create."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)
    order_id: int | None = None
    code: int | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class Special:
    """How faults change the execution of a call."""

    hides: tuple[Hide, ...] = ()
    at_once: Decimal | None = None
    other_order: bool = False


PLAIN = Special()


class Dialect(Protocol):
    """One venue's REST format and its order stream."""

    stream_path: str
    redirect_path: str  # another path that places orders too

    def read(
        self, method: str, path: str, query: str, body: bytes, headers: Mapping[str, str]
    ) -> Call:
        """Understand a request as far as faults and the ledger need it. Never refuses."""
        ...

    def shown_params(self, call: Call) -> dict[str, str]:
        """The call's parameters without credentials and signature."""
        ...

    def execute(self, call: Call, special: Special = PLAIN) -> Answer:
        """Check signature and age, then do it. Refusals are answers too."""
        ...

    def burn(self, call: Call) -> None:
        """The venue saw this create and failed it: its ID is used where failed IDs are burned."""
        ...

    def error(self, status: int, code: int, message: str) -> Answer:
        """The venue's form of an error."""
        ...

    def limited(self, status: int, retry_after_s: float) -> Answer:
        """The venue's answer to too many requests (429), or to a banned address (418)."""
        ...

    async def stream(self, request: web.BaseRequest) -> web.StreamResponse:
        """Serve one connection of the order stream until it ends."""
        ...


def plain_params(params: Mapping[str, Any], secrets: frozenset[str]) -> dict[str, str]:
    """A copy without the named keys."""
    return {key: str(value) for key, value in params.items() if key not in secrets}
