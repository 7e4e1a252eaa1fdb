"""The ledger against the journal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from decimal import Decimal

from django.db import connection

from orders.machine import ACTIVE, TERMINAL, AlertState, MarketState, State
from orders.models import Alert, Fill, Intent, Market
from orders.prepared import Prepared
from tests.simulation.venue import Venue, VenueOrder
from venues.gateway import OrderStatus

_ACTIVE = ", ".join(repr(state.value) for state in sorted(ACTIVE))
_UNTOLD = (
    "SELECT i.client_order_id, i.state FROM orders_intent i JOIN orders_market m"
    f" ON m.id = i.market_id WHERE i.state IN ({_ACTIVE}) AND (m.state <> 'HALTED' OR NOT EXISTS"
    " (SELECT 1 FROM orders_alert a WHERE a.market_id = m.id AND a.kind = 'market_halted'"
    " AND a.state <> 'RESOLVED'))"
)


_MARKETS: Prepared[Market] = Prepared(Market.objects.all)
_INTENTS: Prepared[Intent] = Prepared(Intent.objects.all)
_FILLS: Prepared[Fill] = Prepared(Fill.objects.all)
_ALERTED: Prepared[int] = Prepared(
    lambda market_id: (
        Alert.objects.filter(market_id=market_id, kind="market_halted")
        .exclude(state=AlertState.RESOLVED)
        .values_list("pk", flat=True)
    )
)


def unfinished() -> list[str]:
    """Intents that are neither at their end nor in a halted market with an open alert."""
    raw = connection.connection
    assert raw is not None
    rows = raw.execute(_UNTOLD).fetchall()
    found = [f"{name} is {state} and nobody is told" for name, state in rows]
    rows = raw.execute("SELECT client_order_id FROM orders_intent WHERE state = 'IN_FLIGHT'")
    return found + [f"{name} is IN_FLIGHT and nobody waits for its answer" for (name,) in rows]


def _told(market: Market) -> bool:
    return market.state == MarketState.HALTED and _ALERTED.any(market.pk)


def compare(venue: Venue, tell: Callable[[str, str], None]) -> list[str]:
    """Everything that one decision, one order forbids."""
    by_name: dict[str, list[VenueOrder]] = defaultdict(list)
    for order in venue.orders:
        by_name[order.client_order_id].append(order)
    markets = {market.pk: market for market in _MARKETS.rows()}
    intents = {intent.client_order_id: intent for intent in _INTENTS.rows()}
    by_pk = {intent.pk: intent for intent in intents.values()}
    fills = {fill.venue_trade_id: fill for fill in _FILLS.rows()}
    for intent in intents.values():
        intent.market = markets[intent.market_id]
    for fill in fills.values():
        fill.intent = by_pk[fill.intent_id]
    found: list[str] = []
    for name, orders in by_name.items():
        if name not in intents:
            found.append(f"the ledger has {name}, which the journal lacks")
        effective = [o for o in orders if o.filled or o.status is not OrderStatus.REJECTED]
        if len(effective) > 1:
            found.append(f"{len(effective)} orders with effect for one decision: {name}")
    found += _executions(venue, intents, fills)
    found += _positions(venue, intents, markets)
    for intent in intents.values():
        found += _end(intent, by_name.get(intent.client_order_id, []))
    return found


def _executions(venue: Venue, intents: dict[str, Intent], fills: dict[str, Fill]) -> list[str]:
    found, seen = [], set()
    for order in venue.orders:
        intent = intents.get(order.client_order_id)
        for trade, _ in order.trades:
            seen.add(trade.venue_trade_id)
            fill = fills.get(trade.venue_trade_id)
            if fill is None:
                if intent is None or not _excused(intent):
                    found.append(f"{order.client_order_id}: {trade.venue_trade_id} is not booked")
            elif (fill.quantity, fill.side) != (trade.quantity, trade.side) or (
                fill.intent.client_order_id != order.client_order_id
            ):
                found.append(f"{trade.venue_trade_id} is booked wrongly")
    found += [f"{name} is booked, and the ledger lacks it" for name in fills.keys() - seen]
    return found


def _excused(intent: Intent) -> bool:
    """In doubt, its market halted, people told: what it executed may be missing still."""
    return State(intent.state) not in TERMINAL and _told(intent.market)


def _positions(venue: Venue, intents: dict[str, Intent], markets: dict[int, Market]) -> list[str]:
    """Each market's position is the sum of what the ledger executed, save for what is in doubt."""
    found = []
    for market in markets.values():
        doubtful = any(_excused(i) for i in intents.values() if i.market_id == market.pk)
        total = sum(
            (
                order.filled if order.spec.side == "buy" else -order.filled
                for order in venue.orders
                if order.spec.symbol == market.symbol
            ),
            Decimal(0),
        )
        if market.position != total and not doubtful:
            found.append(f"{market.symbol}: position {market.position}, ledger {total}")
    return found


def _end(intent: Intent, orders: list[VenueOrder]) -> list[str]:
    """What the journal calls the end must be the end."""
    if State(intent.state) not in TERMINAL:
        return []
    state, name = State(intent.state), intent.client_order_id
    if any(order.is_open for order in orders):
        return [f"{name} is {state} and its order is open"]
    if state is State.FILLED and not any(o.status is OrderStatus.FILLED for o in orders):
        return [f"{name} is FILLED and no order of it is"]
    if state is not State.FILLED and any(o.status is OrderStatus.FILLED for o in orders):
        return [f"{name} is {state} and its order is filled"]
    never = state in (State.DENIED, State.REJECTED) and not intent.venue_order_id
    if never and any(o.filled or o.status is not OrderStatus.REJECTED for o in orders):
        return [f"{name} is {state} and had an order"]
    return []
