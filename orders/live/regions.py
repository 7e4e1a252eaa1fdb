"""Parts of a page that are replaced by themselves, and the HTML that replaces them.

The server knows what each browser shows, since all got the same snapshot and the same frames. So it
sends exact out-of-band swaps: this row anew, that one after this, those away.

Table rows and other elements may not stand side by side in one piece of HTML: the browser's parser
would drop one or the other. A frame is therefore a few messages, each of one kind.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.template.loader import render_to_string
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from orders.live.diff import Insert, difference
from orders.roles import Role, rights_of

CACHED = 4096  # parts whose HTML is kept: a snapshot of an unchanged page costs next to nothing
_SWAP = SafeString(' hx-swap-oob="true"')


@dataclass(frozen=True, slots=True)
class Block:
    """One element, replaced whole. The template's root carries the id of the region."""

    template: str
    data: Any


@dataclass(frozen=True, slots=True)
class Rows:
    """A list of elements with a key each. `parent` and `tag` are the elements of list and row."""

    template: str
    rows: Mapping[str, Any]
    parent: str = "tbody"
    tag: str = "tr"


Region = Block | Rows
Regions = Mapping[str, Region]


def rows_of(template: str, rows: Iterable[Any], *, parent: str = "tbody", tag: str = "tr") -> Rows:
    return Rows(template, {row.key: row for row in rows}, parent, tag)


@functools.lru_cache(maxsize=CACHED)
def render(name: str, data: Any, role: Role, *, swap: bool) -> SafeString:
    """The HTML of one part, made once for all who have the role. `data` must be hashable."""
    context = {"row": data, "can": rights_of(role), "swap": _SWAP if swap else ""}
    return SafeString(render_to_string(f"parts/{name}.html", context).strip())


def snapshot(regions: Regions, role: Role) -> tuple[str, ...]:
    """Every region whole."""
    pieces = _Pieces()
    for name, region in regions.items():
        if isinstance(region, Block):
            pieces.blocks.append(render(region.template, region.data, role, swap=True))
        else:
            _whole(pieces, name, region, role)
    return pieces.messages()


def changes(before: Regions, after: Regions, role: Role) -> tuple[str, ...]:
    """What turns a page that shows `before` into one that shows `after`; () if equal."""
    pieces = _Pieces()
    for name, region in after.items():
        old = before[name]
        if isinstance(region, Block):
            if not isinstance(old, Block) or old.data != region.data:
                pieces.blocks.append(render(region.template, region.data, role, swap=True))
        elif isinstance(old, Rows) and old.rows != region.rows:
            _differing(pieces, name, old, region, role)
    return pieces.messages()


class _Pieces:
    """HTML by kind, in the order in which it must be applied."""

    def __init__(self) -> None:
        self.rows: list[str] = []
        self.bodies: list[str] = []
        self.blocks: list[str] = []

    def messages(self) -> tuple[str, ...]:
        kinds: Sequence[list[str]] = (self.rows, self.bodies, self.blocks)
        return tuple("".join(kind) for kind in kinds if kind)

    def singles(self, region: Rows) -> list[str]:
        return self.rows if region.tag == "tr" else self.blocks

    def lists(self, region: Rows) -> list[str]:
        return self.bodies if region.tag == "tr" else self.blocks


def _whole(pieces: _Pieces, name: str, region: Rows, role: Role) -> None:
    rows = _joined(region, region.rows, role)
    html = '<{tag} id="{name}" hx-swap-oob="innerHTML">{rows}</{tag}>'
    pieces.lists(region).append(format_html(html, tag=region.parent, name=name, rows=rows))


def _differing(pieces: _Pieces, name: str, old: Rows, new: Rows, role: Role) -> None:
    found = difference(old.rows, new.rows)
    for key in found.remove:
        gone = '<{tag} id="{key}" hx-swap-oob="delete"></{tag}>'
        pieces.singles(new).append(format_html(gone, tag=new.tag, key=key))
    for key in found.replace:
        pieces.singles(new).append(render(new.template, new.rows[key], role, swap=True))
    for insert in found.insert:
        pieces.lists(new).append(_inserted(name, new, insert, role))


def _inserted(name: str, region: Rows, insert: Insert, role: Role) -> str:
    where = f"afterbegin:#{name}" if insert.after is None else f"afterend:#{insert.after}"
    return format_html(
        '<{tag} hx-swap-oob="{where}">{rows}</{tag}>',
        tag=region.parent,
        where=where,
        rows=_joined(region, insert.keys, role),
    )


def _joined(region: Rows, keys: Iterable[str], role: Role) -> SafeString:
    parts = ((render(region.template, region.rows[key], role, swap=False),) for key in keys)
    return format_html_join("", "{}", parts)
