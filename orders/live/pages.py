"""The pages that are live: what each shows, and which changes of the journal concern it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime

from django.core.exceptions import ObjectDoesNotExist

from orders.live.regions import Block, Regions, Rows, rows_of
from orders.models import Transition
from orders.queries import pages
from orders.queries.board import MarketRow, Status
from orders.queries.pages import (
    AlertsPage,
    BoardPage,
    IntentPage,
    LivePage,
    MarketPage,
)

NAMES = ("board", "market", "intent", "alerts", "desk")
NEEDS_ID = ("market", "intent")


class NoSuchPageError(Exception):
    """The name is unknown, or what it shows does not exist."""


@dataclass(frozen=True, slots=True)
class PageName:
    """`id` is the market or the intent; 0 for the other pages."""

    name: str
    id: int = 0

    def __post_init__(self) -> None:
        if self.name not in NAMES or (self.name in NEEDS_ID) != (self.id > 0):
            raise NoSuchPageError(f"{self.name} {self.id}")


@dataclass(slots=True)
class Changes:
    """What the journal's new lines are about. `everything` where lines may have been missed."""

    everything: bool = False
    markets: set[int] = field(default_factory=set)
    intents: set[int] = field(default_factory=set)
    alerts: bool = False

    def __bool__(self) -> bool:
        return self.everything or self.alerts or bool(self.markets or self.intents)

    def add(self, lines: Iterable[Transition]) -> None:
        for line in lines:
            if line.market_id is not None:
                self.markets.add(line.market_id)
            if line.intent_id is not None:
                self.intents.add(line.intent_id)
            self.alerts |= line.subject == "alert"


def load(page: PageName, now: datetime) -> LivePage:
    """Raises NoSuchPageError."""
    try:
        match page.name:
            case "board":
                return pages.board_page(now)
            case "market":
                return pages.market_page(now, page.id)
            case "intent":
                return pages.intent_page(now, page.id)
            case "alerts":
                return pages.alerts_page(now)
    except ObjectDoesNotExist as error:
        raise NoSuchPageError(f"{page.name} {page.id}") from error
    return pages.plain_page(now)


def reload(
    page: PageName, shown: LivePage, changes: Changes, status: Status, now: datetime
) -> LivePage:
    """The page after the changes. What they do not concern is not read again."""
    if changes.everything:
        return load(page, now)
    if isinstance(shown, BoardPage):
        return pages.board_page_after(shown, status, changes.markets, now)
    concerned = {
        "market": page.id in changes.markets,
        "intent": page.id in changes.intents or _market_of(shown) in changes.markets,
        "alerts": changes.alerts,
        "desk": False,
    }
    return load(page, now) if concerned[page.name] else replace(shown, status=status)


def _market_of(shown: LivePage) -> int:
    """The market of an order's page, whose state stands there too; 0 for other pages."""
    return shown.intent.market_id if isinstance(shown, IntentPage) else 0


def aging(shown: LivePage) -> set[int]:
    """Markets with something in flight: it becomes doubt by time alone, without a line."""
    rows: list[MarketRow] = []
    if isinstance(shown, BoardPage):
        rows = shown.markets
    elif isinstance(shown, MarketPage):
        rows = [shown.market]
    return {row.pk for row in rows if row.in_flight}


def regions(page: LivePage) -> Regions:
    """The page's parts by the ids that they have in its HTML."""
    status: dict[str, Block | Rows] = {
        "status": Block("status", page.status),
        "cut-off": Block("cut_off", page.status.cut_off),
    }
    if isinstance(page, BoardPage):
        return status | {
            "totals": Block("totals", page.totals),
            "alerts": _alerts(page.alerts),
            "markets": rows_of("market_row", page.markets),
            "latest": rows_of("intent_row", page.latest),
        }
    if isinstance(page, MarketPage):
        return status | {
            "market": Block("market", page.market),
            "alerts": _alerts(page.alerts),
            "doubtful": Block("doubtful", tuple(page.doubtful)),
            "intents": rows_of("intent_row", page.intents),
            "fills": rows_of("fill_row", page.fills),
            "journal": rows_of("journal_row", page.journal),
        }
    if isinstance(page, IntentPage):
        return status | {
            "intent": Block("intent", page.intent),
            "fills": rows_of("fill_row", page.fills),
            "journal": rows_of("line_row", page.journal),
        }
    if isinstance(page, AlertsPage):
        return status | {
            "alerts": _alerts(page.alerts),
            "resolved": rows_of("resolved_row", page.resolved),
        }
    return status


def _alerts(rows: Iterable[object]) -> Rows:
    return rows_of("alert", rows, parent="ul", tag="li")
