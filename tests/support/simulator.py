"""A simulator in a process of its own, for tests that go through the whole stack."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Self
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit
from urllib.request import Request, urlopen

ROOT = Path(__file__).resolve().parents[2]
API_KEY = "test-key"
SECRET = "simulator-secret"  # the simulator's default
START_TIMEOUT_S = 20.0
CALL_TIMEOUT_S = 10.0

Fault = dict[str, Any]


class SimulatorError(RuntimeError):
    """The simulator refused a call of the test; carries its words."""


class Simulator:
    """Starts `python -m venues.simulator` on a free port; use as a context manager or stop() it.

    Further options of its command line go in as `arguments`, for example "--seed", "7". Prices
    stand still unless `still` is False, so that tests are deterministic.
    """

    def __init__(
        self, *arguments: str, still: bool = True, used_id: str = "unique_while_open", port: int = 0
    ) -> None:
        command = [sys.executable, "-m", "venues.simulator", "--port", str(port)]
        command += ["--used-id", used_id, *(["--still"] if still else []), *arguments]
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        first_line = self.process.stdout.readline()
        if "http://" not in first_line:
            self.process.wait(START_TIMEOUT_S)
            raise SimulatorError(f"the simulator did not start: {first_line!r}")
        self.url = first_line.split()[-1]
        self.port = int(self.url.rpartition(":")[2])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End the process. Idempotent."""
        self.process.terminate()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(5)
        if self.process.stdout is not None:
            self.process.stdout.close()

    def faults(self, *faults: Fault) -> list[Fault]:
        """Append to the plan. The constructors below make the common ones."""
        return list(self._call("POST", "/_faults", list(faults))["faults"])

    def loaded_faults(self) -> list[Fault]:
        """The plan, with `seen` and `hits` of each fault."""
        return list(self._call("GET", "/_faults")["faults"])

    def clear_faults(self, symbol: str | None = None) -> None:
        """Remove every fault, and end a rate limit and a silence that are going on.

        With a symbol only the faults that match it.
        """
        self._call("DELETE", "/_faults" + (f"?symbol={symbol}" if symbol else ""))

    @classmethod
    def attached(cls, url: str) -> Self:
        """One that runs already; whoever started it stops it."""
        self = cls.__new__(cls)
        self.url = url
        self.port = int(url.rpartition(":")[2])
        return self

    def ledger(
        self, client_order_id: str | None = None, symbol: str | None = None
    ) -> dict[str, Any]:
        """requests, orders, executions, calls (look-up counts), stream."""
        wanted = {"client_order_id": client_order_id, "symbol": symbol}
        query = urlencode({key: value for key, value in wanted.items() if value is not None})
        return dict(self._call("GET", f"/_ledger?{query}"))

    def calls(self) -> int:
        """How many requests it has met, but for those that only ask for its time."""
        counted = self.ledger()["calls"]
        return sum(sum(of.values()) for name, of in counted.items() if name != "time")

    def reset(self, symbol: str | None = None) -> None:
        """Forget everything (orders, faults, clock, rules), or one symbol's part."""
        self._call("POST", "/_reset", {} if symbol is None else {"symbol": symbol})

    def price(self, symbol: str, price: str) -> None:
        """Move the price; resting orders that it crosses are filled."""
        self._call("POST", "/_price", {"symbol": symbol, "price": price})

    def fill(
        self,
        symbol: str,
        *,
        client_order_id: str | None = None,
        order_id: int | None = None,
        quantity: str | None = None,
        late: bool | None = None,
    ) -> dict[str, Any]:
        """Fill a resting order, wholly or in part; returns the order as the ledger shows it.

        With `late` one that has ended already.
        """
        given = {
            "client_order_id": client_order_id,
            "order_id": order_id,
            "quantity": quantity,
            "late": late,
        }
        given = {key: value for key, value in given.items() if value is not None}
        return dict(self._call("POST", "/_fill", {"symbol": symbol, **given}))

    def push(self, symbol: str, client_order_id: str, kind: str, status: str) -> None:
        """Tell the streams of an open order something that is not so."""
        told = {"client_order_id": client_order_id, "kind": kind, "status": status}
        self._call("POST", "/_push", {"symbol": symbol, **told})

    def clock(self, offset_ms: float) -> None:
        """Move the venue's clock against ours."""
        self._call("POST", "/_clock", {"offset_ms": offset_ms})

    def rules(self, used_id: str | None = None, honour_expiry: bool | None = None) -> None:
        """Change how used client order IDs and expired requests are treated."""
        given = {"used_id": used_id, "honour_expiry": honour_expiry}
        self._call("POST", "/_rules", {key: v for key, v in given.items() if v is not None})

    def point(self, exchange: Any) -> Any:
        """Let a ccxt binance instance, of any flavour, talk to this simulator; returns it."""
        exchange.apiKey, exchange.secret = API_KEY, SECRET
        exchange.urls["api"] = _moved(exchange.urls["api"], f"127.0.0.1:{self.port}")
        return exchange

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = Request(self.url + path, data, method=method)
        try:
            with urlopen(request, timeout=CALL_TIMEOUT_S) as answer:
                return json.load(answer)
        except HTTPError as error:
            raise SimulatorError(f"{method} {path}: {error.read().decode()}") from None


def _moved(urls: Any, host: str) -> Any:
    """Every URL of a nested dict with the simulator's scheme and host; paths stay."""
    if isinstance(urls, dict):
        return {key: _moved(value, host) for key, value in urls.items()}
    parts = urlsplit(urls)
    scheme = "ws" if parts.scheme.startswith("ws") else "http"
    return parts._replace(scheme=scheme, netloc=host).geturl()


def fault(path: str | None = "create", *, action: dict[str, Any], **match: Any) -> Fault:
    """Any fault. `match`: symbol, client_order_id, ordinal, from_ordinal, times, for_s, method."""
    named = {"path": path, **match}
    return {
        "match": {k: v for k, v in named.items() if v is not None or k == "times"},
        "action": action,
    }


def lost_answer(**match: Any) -> Fault:
    """A create is executed; the connection is cut without an answer."""
    return fault(action={"drop_after": True}, **match)


def silent_answer(**match: Any) -> Fault:
    """A create is executed; no answer ever comes, the connection stays."""
    return fault(action={"drop_after": {"hold": True}}, **match)


def dropped_before(**match: Any) -> Fault:
    """A create is never executed; the connection is cut without an answer."""
    return fault(action={"drop_before": True}, **match)


def unreachable(for_s: float, **match: Any) -> Fault:
    """Every request of the match is cut off unexecuted, for so long from now on."""
    return fault(None, action={"unreachable": True}, for_s=for_s, **match)


def late(before_ms: float = 0, after_ms: float = 0, **match: Any) -> Fault:
    """A create is delayed before and after its execution."""
    return fault(action={"delay_before_ms": before_ms, "delay_after_ms": after_ms}, **match)


def answered(
    status: int, body: Any = "", *, execute: bool = False, coin: bool = False, **match: Any
) -> Fault:
    """A create is answered with this instead, executed or not."""
    rule = {"status": status, "body": body, "execute": execute, "coin": coin}
    return fault(action={"respond": rule}, **match)


def refused(code: int, msg: str, status: int = 400, path: str = "create", **match: Any) -> Fault:
    """A request is refused with this code and these words."""
    return fault(path, action={"refuse": {"code": code, "msg": msg, "status": status}}, **match)


def hidden(*look_ups: str, for_s: float | None = None, **options: Any) -> Fault:
    """The next created order is not shown by these look-ups; None: for ever.

    `options` may be after_s, finished_only and when, and anything of a match.
    """
    names = ("after_s", "finished_only", "when")
    hide: dict[str, Any] = {"from": list(look_ups)}
    hide |= {"for_ever": True} if for_s is None else {"for_s": for_s}
    hide |= {name: options.pop(name) for name in names if name in options}
    return fault(action={"hide": hide}, **options)
