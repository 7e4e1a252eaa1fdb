"""Markets: halted by the lane or a person, opened by a person."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from orders.journal import alerts, entries
from orders.journal.alerts import AlertDraft
from orders.journal.batch import LOCKED_MARKETS, Batch
from orders.journal.entries import Stamp
from orders.journal.writing import writing
from orders.machine import IN_DOUBT, MARKET_TABLE, Act, Event, MarketState, State
from orders.models import Intent, Market
from orders.prepared import Prepared, insert, update

_WAITING: Prepared[Intent] = Prepared(
    lambda market_id: (
        Intent.objects.select_for_update()
        .filter(market_id=market_id, state=State.INTENT)
        .order_by("pk")
    )
)


class RefusedError(Exception):
    """What was asked for is not possible now; the text says why and what is."""


@dataclass(frozen=True, slots=True)
class Halt:
    """Stop placing in one market, deny what waits there, and tell people."""

    market_id: int
    reason: str
    kind: str = "operator"  # a second halt of another kind or about another order is told too
    remedy: str = "Open the market's page, read the evidence, decide, then resume."
    intent_id: int | None = None


def halt_topic(market_id: int) -> str:
    """What the topics of all alerts about one market's halt begin with."""
    return f"market_halted:{market_id}:"


def halt(order: Halt, *, actor: str, at: datetime) -> Market:
    """Halt a market. Halting a halted one changes nothing."""
    with writing():
        (market,) = LOCKED_MARKETS.rows([order.market_id])
        put_halt(market, order, Stamp.new(actor, at))
        return market


def resume(market_id: int, *, actor: str, reason: str, at: datetime) -> Market:
    """Open a halted market. Raises RefusedError while anything there is unresolved."""
    with writing():
        market = Market.objects.select_for_update(no_key=True).get(pk=market_id)
        if market.state == MarketState.OPEN:
            return market
        if doubtful := _doubtful(market):
            raise RefusedError(
                f"{market.symbol} stays halted: unresolved {', '.join(doubtful)}. "
                "Reconcile; it can be resumed when nothing is unresolved."
            )
        stamp = Stamp.new(actor, at)
        _move(market, Act.RESUMED, stamp, reason)
        alerts.settle_topics(halt_topic(market.pk), stamp, f"resumed: {reason}")
        return market


def request_look(market_id: int, *, actor: str, reason: str, at: datetime) -> Market:
    """Ask the lane to look at every unresolved intent of a market now."""
    with writing():
        market = Market.objects.select_for_update(no_key=True).get(pk=market_id)
        market.look_requested_at = at
        market.save(update_fields=["look_requested_at"])
        stamp = Stamp.new(actor, at)
        line = entries.of_market(
            market, stamp, Act.RECONCILE_REQUESTED, market.state, reason=reason
        )
        insert([line])
        return market


def put_halt(market: Market, order: Halt, stamp: Stamp) -> None:
    """Within a transaction, on a locked market. In a halted one only a new cause is told."""
    topic = f"{halt_topic(market.pk)}{order.kind}:{order.intent_id or ''}"
    if market.state == MarketState.OPEN:
        _move(market, Act.HALTED, stamp, order.reason)
        _deny_waiting(market, order.reason, stamp)
    elif order.intent_id is None or alerts.is_open(topic):
        return
    alerts.put(
        AlertDraft(
            kind="market_halted",
            topic=topic,
            severity="critical",
            message=f"{market.symbol} on {market.account.name} is halted: {order.reason}",
            remedy=order.remedy,
            account_id=market.account_id,
            market_id=market.pk,
            intent_id=order.intent_id,
        ),
        stamp,
    )


def _deny_waiting(market: Market, reason: str, stamp: Stamp) -> None:
    batch = Batch(stamp)
    for intent in _WAITING.rows(market.pk):
        batch.apply(intent, Event.DENIED, reason=f"market halted: {reason}")
    batch.flush()


def _move(market: Market, act: Act, stamp: Stamp, reason: str) -> None:
    before = MarketState(market.state)
    market.state = MARKET_TABLE[before, act].value
    halted = market.state == MarketState.HALTED
    market.halted_at = stamp.at if halted else None
    market.halted_reason = entries.clean(reason) if halted else ""
    market.last_event_at = stamp.at
    update(market, ("state", "halted_at", "halted_reason", "last_event_at"))
    insert([entries.of_market(market, stamp, act, before.value, reason=reason)])


def _doubtful(market: Market) -> list[str]:
    """Client order IDs of what is in doubt. In flight counts: its answer is not known yet."""
    states = [*IN_DOUBT, State.IN_FLIGHT]
    rows = Intent.objects.filter(market=market, state__in=states).order_by("pk")
    return list(rows.values_list("client_order_id", flat=True)[:10])
