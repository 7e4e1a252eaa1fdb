"""The fault plan: what it may say, and which request or event meets which fault.

docs/simulator.md describes the language for people.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from venues.simulator import fields
from venues.simulator.dialect import Call
from venues.simulator.fields import FieldError, Reader
from venues.simulator.orders import Event, Hide

MAX_FAULTS = 1000
LOOK_UPS = ("query", "open_orders", "all_orders", "trades", "cancel")
EVENT_KINDS = ("NEW", "TRADE", "CANCELED", "EXPIRED", "REJECTED")

_DROP: dict[str, Reader] = {"hold": fields.flag, "reset": fields.flag}

# Actions that decide the answer; a request meets one of them at most.
ENDINGS: dict[str, Reader] = {
    "unreachable": fields.yes,
    "drop_before": fields.record(_DROP, bare=True),
    "drop_after": fields.record(_DROP, bare=True),
    "close_reused": fields.record({"execute": fields.flag}, bare=True),
    "respond": fields.record(
        {
            "status": fields.status,
            "body": fields.anything,
            "headers": fields.headers,
            "execute": fields.flag,
            "coin": fields.flag,
        },
        required=("status",),
    ),
    "cut_body": fields.record(
        {"keep_bytes": fields.size, "fraction": fields.fraction, "chunked": fields.flag}, bare=True
    ),
    "refuse": fields.record(
        {"code": fields.whole, "msg": fields.string, "status": fields.status},
        required=("code", "msg"),
    ),
    "rate_limit": fields.record(
        {"status": fields.status, "retry_after_s": fields.number}, required=("retry_after_s",)
    ),
    "redirect": fields.record({"status": fields.status, "to": fields.string}, bare=True),
}
# Actions that change how a request is executed, or when.
MODIFIERS: dict[str, Reader] = {
    "delay_before_ms": fields.number,
    "delay_after_ms": fields.number,
    "push_before_answer": fields.record({"delay_ms": fields.number}, required=("delay_ms",)),
    "hide": fields.record(
        {
            "from": fields.some_of(*LOOK_UPS),
            "for_s": fields.number,
            "for_ever": fields.yes,
            "after_s": fields.number,
            "finished_only": fields.flag,
            "when": fields.one_of("accepted", "finished"),
        },
        required=("from",),
    ),
    "partial_fill": fields.record({"quantity": fields.amount}, required=("quantity",)),
    "ignore_id": fields.yes,
}
# Actions on the simulator itself. Without a match they take effect when they are loaded.
SWITCHES: dict[str, Reader] = {
    "clock_offset_ms": fields.signed,
    "stream_silence": fields.record({"for_s": fields.number}, required=("for_s",)),
    "stream_drop": fields.yes,
}
# Actions on events of the order stream; they match events, not requests.
EVENT_ACTIONS: dict[str, Reader] = {
    "stream_drop_event": fields.record({"kind": fields.one_of(*EVENT_KINDS)}, bare=True),
    "stream_duplicate": fields.record({"kind": fields.one_of(*EVENT_KINDS)}, bare=True),
}
_READ_ACTION = fields.record({**ENDINGS, **MODIFIERS, **SWITCHES, **EVENT_ACTIONS})
_READ_MATCH = fields.record(
    {
        "method": fields.one_of("GET", "POST", "PUT", "DELETE"),
        "path": fields.string,
        "symbol": fields.symbol,
        "client_order_id": fields.string,
        "ordinal": fields.count,
        "from_ordinal": fields.count,
        "times": fields.count_or_null,
        "for_s": fields.number,
        "for_s_from": fields.one_of("loaded", "first_hit"),
    }
)
_READ_FAULT = fields.record({"match": _READ_MATCH, "action": _READ_ACTION}, required=("action",))


@dataclass(slots=True)
class Fault:
    """One line of the plan, with its counts."""

    match: dict[str, Any]
    action: dict[str, Any]
    source: dict[str, Any]
    loaded_s: float
    seen: int = 0
    hits: int = 0
    first_hit_s: float | None = None
    ending: bool = field(init=False)
    on_events: bool = field(init=False)

    def __post_init__(self) -> None:
        self.ending = any(name in ENDINGS for name in self.action)
        self.on_events = any(name in EVENT_ACTIONS for name in self.action)

    @property
    def immediate(self) -> bool:
        """Whether it acts when it is loaded, and on no request."""
        return not self.match and all(name in SWITCHES for name in self.action)

    def fits_call(self, call: Call, reused: bool) -> bool:
        match = self.match
        return (
            match.get("symbol") in (None, call.symbol)
            and match.get("client_order_id") in (None, call.client_order_id)
            and match.get("method") in (None, call.method)
            and ("path" not in match or _path_fits(match["path"], call))
            and (reused or "close_reused" not in self.action)
        )

    def fits_event(self, event: Event) -> bool:
        [rule] = self.action.values()
        return (
            self.match.get("symbol") in (None, event.order.symbol)
            and self.match.get("client_order_id") in (None, event.order.client_order_id)
            and rule.get("kind") in (None, event.kind)
        )

    def due(self, now_s: float) -> bool:
        """Count one thing that fits, and say whether the fault applies to it."""
        self.seen += 1
        match = self.match
        if self.seen < match.get("from_ordinal", 1) or self.seen != match.get("ordinal", self.seen):
            return False
        times = match.get("times", None if "for_s" in match else 1)
        if times is not None and self.hits >= times:
            return False
        return self._in_time(now_s)

    def _in_time(self, now_s: float) -> bool:
        if "for_s" not in self.match:
            return True
        since_s: float | None = self.loaded_s
        if self.match.get("for_s_from") == "first_hit":
            since_s = self.first_hit_s
        return since_s is None or now_s - since_s < self.match["for_s"]

    def hit(self, now_s: float) -> None:
        self.hits += 1
        if self.first_hit_s is None:
            self.first_hit_s = now_s

    def as_json(self) -> dict[str, Any]:
        age_s = round(time.monotonic() - self.loaded_s, 3)
        return {**self.source, "seen": self.seen, "hits": self.hits, "age_s": age_s}


def _path_fits(wanted: str, call: Call) -> bool:
    if wanted.endswith("*"):
        return call.path.startswith(wanted[:-1])
    return wanted in (call.endpoint, call.path)


class Plan:
    """The faults that are loaded, in order."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []

    def load(self, source: Any) -> list[Fault]:
        """Append faults, all or none. Raises FieldError, naming the field."""
        if isinstance(source, dict):
            source = fields.record({"faults": fields.anything}, required=("faults",))(
                source, "body"
            )["faults"]
        if not isinstance(source, list):
            raise FieldError("faults: must be a list of faults")
        if len(self.faults) + len(source) > MAX_FAULTS:
            raise FieldError(f"faults: at most {MAX_FAULTS} may be loaded; DELETE /_faults first")
        loaded = [_read(item, f"faults[{i}]") for i, item in enumerate(source)]
        self.faults.extend(loaded)
        return loaded

    def clear(self, symbol: str | None = None) -> None:
        """Remove all faults, or those that match one symbol."""
        self.faults = [
            fault
            for fault in self.faults
            if symbol is not None and fault.match.get("symbol") != symbol
        ]

    def for_call(self, call: Call, reused: bool) -> dict[str, Any]:
        """The actions that this request meets: every fault that is due, in order.

        A fault stands back, unspent, where an earlier one has decided the answer or has the same
        action.
        """
        actions: dict[str, Any] = {}
        now_s, ended = time.monotonic(), False
        for fault in self.faults:
            if fault.on_events or fault.immediate or not fault.fits_call(call, reused):
                continue
            taken = (ended and fault.ending) or not actions.keys().isdisjoint(fault.action)
            if fault.due(now_s) and not taken:
                fault.hit(now_s)
                actions.update(fault.action)
                ended = ended or fault.ending
        return actions

    def copies_of(self, event: Event) -> int:
        """How often the stream must send this event: 1, or 0 (lost), or more (repeated)."""
        copies, now_s = 1, time.monotonic()
        for fault in self.faults:
            if fault.on_events and fault.fits_event(event) and fault.due(now_s):
                fault.hit(now_s)
                copies = 0 if "stream_drop_event" in fault.action else copies + bool(copies)
        return copies


def _read(source: Any, where: str) -> Fault:
    read = _READ_FAULT(source, where)
    match, action = read.get("match", {}), read["action"]
    if not action:
        raise FieldError(f"{where}.action: names nothing to do")
    endings = [name for name in action if name in ENDINGS]
    if len(endings) > 1:
        raise FieldError(f"{where}.action: {' and '.join(endings)} exclude each other")
    if "ordinal" in match and "from_ordinal" in match:
        raise FieldError(f"{where}.match: ordinal and from_ordinal exclude each other")
    _check_events(match, action, where)
    if "hide" in action and ("for_s" in action["hide"]) == ("for_ever" in action["hide"]):
        raise FieldError(f"{where}.action.hide: needs for_s or for_ever, one of them")
    if "cut_body" in action and {"keep_bytes", "fraction"} <= action["cut_body"].keys():
        raise FieldError(f"{where}.action.cut_body: keep_bytes and fraction exclude each other")
    return Fault(match, action, source, time.monotonic())


def _check_events(match: dict[str, Any], action: dict[str, Any], where: str) -> None:
    if not any(name in EVENT_ACTIONS for name in action):
        return
    if len(action) > 1:
        raise FieldError(f"{where}.action: an action on stream events must stand alone")
    for name in ("method", "path"):
        if name in match:
            raise FieldError(f"{where}.match.{name}: events of the stream have none")


def hides_of(actions: dict[str, Any]) -> Iterable[Hide]:
    """The hide action as the engine takes it."""
    if "hide" not in actions:
        return ()
    hide = actions["hide"]
    return (
        Hide(
            endpoints=hide["from"],
            for_s=hide.get("for_s"),
            after_s=hide.get("after_s", 0.0),
            finished_only=hide.get("finished_only", False),
            since_finish=hide.get("when") == "finished",
        ),
    )
