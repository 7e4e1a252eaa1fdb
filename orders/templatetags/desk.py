"""Words and small elements that all pages share."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from django import template
from django.conf import settings
from django.template import RequestContext
from django.utils.html import format_html
from django.utils.safestring import SafeString

from orders.clock import SYSTEM
from orders.fields import plain
from orders.queries import board
from orders.roles import Right, allows, rights_of, role_of

register = template.Library()

NONE = "\N{EN DASH}"  # how an absent value reads

# (shape, class, what it means). The axis runs from blue (well) to orange (needs somebody).
_CHIPS = {
    "OPEN": ("●", "well", "takes orders"),
    "BLOCKED": ("◆", "doubt", "something is unresolved: nothing new is sent until it is"),
    "HALTED": ("■", "stop", "places nothing until a person resumes it"),
    "NOT_CONNECTED": ("■", "stop", "nothing can be sent for this account"),
    "INTENT": ("○", "calm", "recorded, waiting to be sent"),
    "IN_FLIGHT": ("▷", "calm", "a request may be on its way"),
    "UNKNOWN": ("?", "doubt", "the request may have been executed; not known yet"),
    "RECONCILING": ("◇", "doubt", "the venue is being asked"),
    "ACKED": ("◐", "well", "the order exists at the venue"),
    "LIVE": ("◉", "well", "the order rests at the venue"),
    "FILLED": ("✔", "done", "executed in full"),
    "CANCELED": ("\N{MULTIPLICATION SIGN}", "end", "ended without all of its execution"),
    "REJECTED": ("▲", "bad", "definitely refused by the venue"),
    "DENIED": ("▽", "bad", "refused by the desk, never placed"),
    "ACKNOWLEDGED": ("◇", "calm", "somebody looks after it; it is not over"),
    "RESOLVED": ("✔", "end", "over"),
    "critical": ("■", "stop", "needs somebody now"),
    "warning": ("◆", "doubt", "needs somebody soon"),
    "info": ("○", "calm", "good to know"),
}
_STRANGE = ("?", "doubt", "a word that this page does not know")


@register.simple_tag(takes_context=True)
def desk(context: RequestContext) -> str:
    """Puts what every page shows at its top into the context, where the view has not."""
    request = context.get("request")
    user = getattr(request, "user", None)
    role = getattr(request, "role", None) or (role_of(user) if user else None)
    values: dict[str, Any] = {"role": role, "demo": settings.ORDERDESK_DEMO}
    values["can"] = context.get("can") or rights_of(role)
    if allows(role, Right.VIEW):
        values["status"] = context.get("status") or board.status(SYSTEM.now())
        values["socket"] = context.get("socket") or "/ws/desk"
        values["now"] = SYSTEM.now()
    context.update(values)  # a new layer on top of the template's, for the rest of the page
    return ""


@register.simple_tag
def chip(word: str) -> SafeString:
    """A state as shape, word and colour."""
    shape, kind, meaning = _CHIPS.get(word, _STRANGE)
    return format_html(
        '<span class="chip {}" title="{}"><i aria-hidden="true">{}</i>{}</span>',
        kind,
        meaning,
        shape,
        (word or "UNKNOWN").replace("_", " ").upper(),
    )


@register.simple_tag
def at(value: datetime | None, *, ms: bool = False) -> SafeString:
    """An instant: UTC, to the millisecond if `ms`; the local time comes into the tooltip."""
    if value is None:
        return _none()
    value = value.astimezone(UTC)
    day = "%H:%M:%S" if value.date() == SYSTEM.now().date() else "%Y-%m-%d %H:%M:%S"
    return format_html(
        '<time datetime="{}" title="{} UTC">{}</time>',
        value.isoformat(timespec="milliseconds"),
        f"{value:%Y-%m-%d %H:%M:%S}.{value.microsecond // 1000:03}",
        value.strftime(day) + (f".{value.microsecond // 1000:03}" if ms else ""),
    )


@register.simple_tag
def age(value: datetime | None) -> SafeString:
    """How long ago. It ages by itself; without scripts it reads as the instant."""
    if value is None:
        return _none()
    value = value.astimezone(UTC)
    return format_html(
        '<time class="age" datetime="{}" title="{} UTC">{}</time>',
        value.isoformat(timespec="milliseconds"),
        f"{value:%Y-%m-%d %H:%M:%S}",
        value.strftime("%H:%M:%S"),
    )


@register.filter
def num(value: Decimal | None) -> str:
    """Exact, in decimal notation; a dash for none."""
    return NONE if value is None else plain(value)


@register.filter
def tail(value: str) -> str:
    """The end of an ID, where it differs from others."""
    return value if len(value) <= 10 else f"…{value[-8:]}"


@register.simple_tag
def copy(value: str) -> SafeString:
    """A small button that copies the whole ID."""
    if not value:
        return SafeString("")
    return format_html(
        '<button type="button" class="copy" data-copy="{0}" title="Copy {0}" '
        'aria-label="Copy {0}"></button>',
        value,
    )


@register.filter
def actor(value: str) -> str:
    """Who acted, without the process number of a lane."""
    kind, _, name = value.partition(":")
    return f"{kind} {name}" if kind in ("user", "token") else kind


def _none() -> SafeString:
    return format_html('<span class="none">{}</span>', NONE)
