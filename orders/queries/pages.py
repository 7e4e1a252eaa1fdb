"""What each live page shows, whole: read for the first view and again after every change."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime

from orders.models import Market
from orders.queries import alerts, board, intents
from orders.queries.alerts import AlertRow
from orders.queries.board import MarketRow, Status, Totals
from orders.queries.intents import FillRow, IntentDetail, IntentRow, JournalRow


@dataclass(frozen=True, slots=True)
class BoardPage:
    status: Status
    totals: Totals
    alerts: list[AlertRow]
    markets: list[MarketRow]
    latest: list[IntentRow]


@dataclass(frozen=True, slots=True)
class MarketPage:
    status: Status
    market: MarketRow
    alerts: list[AlertRow]
    doubtful: list[IntentRow]
    intents: list[IntentRow]
    fills: list[FillRow]
    journal: list[JournalRow]


@dataclass(frozen=True, slots=True)
class IntentPage:
    status: Status
    intent: IntentDetail
    fills: list[FillRow]
    journal: list[JournalRow]


@dataclass(frozen=True, slots=True)
class AlertsPage:
    status: Status
    alerts: list[AlertRow]
    resolved: list[AlertRow]


@dataclass(frozen=True, slots=True)
class PlainPage:
    status: Status


LivePage = BoardPage | MarketPage | IntentPage | AlertsPage | PlainPage


def board_page(now: datetime) -> BoardPage:
    return _board_page(board.status(now), board.market_rows(now))


def board_page_after(
    before: BoardPage, status: Status, changed: Collection[int], now: datetime
) -> BoardPage:
    """The board, where only the markets in `changed` are read again."""
    kept = [row for row in before.markets if row.pk not in changed]
    fresh = board.market_rows(now, changed) if changed else []
    return _board_page(status, board.in_order([*kept, *fresh]))


def _board_page(status: Status, markets: list[MarketRow]) -> BoardPage:
    return BoardPage(
        status=status,
        totals=board.totals(markets),
        alerts=alerts.unresolved(),
        markets=markets,
        latest=intents.latest(),
    )


def market_page(now: datetime, market_id: int) -> MarketPage:
    """Raises Market.DoesNotExist."""
    rows = board.market_rows(now, [market_id], every=True)
    if not rows:
        raise Market.DoesNotExist
    return MarketPage(
        status=board.status(now),
        market=rows[0],
        alerts=alerts.unresolved(market_id),
        doubtful=intents.doubtful(board.unresolved(now), market_id),
        intents=intents.latest(intents.MOST, market_id),
        fills=intents.fills(market_id=market_id),
        journal=intents.journal(evidence=False, market_id=market_id),
    )


def intent_page(now: datetime, intent_id: int) -> IntentPage:
    """Raises Intent.DoesNotExist."""
    detail = intents.detail(intent_id)
    state = board.state_of(detail.market_id, detail.market_state, now)
    return IntentPage(
        status=board.status(now),
        intent=replace(detail, market_state=state),
        fills=intents.fills(intent_id=intent_id),
        journal=intents.journal(intents.MOST_LINES, evidence=True, intent_id=intent_id),
    )


def alerts_page(now: datetime) -> AlertsPage:
    return AlertsPage(
        status=board.status(now), alerts=alerts.unresolved(), resolved=alerts.resolved()
    )


def plain_page(now: datetime) -> PlainPage:
    return PlainPage(status=board.status(now))
