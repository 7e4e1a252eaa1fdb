"""Keeps the account and market rows equal to the account file. The file decides, rows remember."""

from __future__ import annotations

from collections.abc import Mapping

from django.conf import settings
from django.db import transaction

from orders.models import Account, Lease, Market
from orders.prepared import Prepared
from venues.gateway import MarketInfo, VenueSettings


def sync(configured: Mapping[str, VenueSettings]) -> None:
    """Create and update rows for the file's accounts; what left the file becomes inactive.

    Nothing is deleted: the journal refers to it.
    """
    Account.objects.exclude(name__in=configured).filter(active=True).update(active=False)
    for name, venue in configured.items():
        with transaction.atomic():
            _sync_account(name, venue)


def _sync_account(name: str, venue: VenueSettings) -> None:
    facts = {
        "exchange": venue.exchange,
        "base_url": venue.base_url or "",
        "sandbox": venue.sandbox,
        "active": True,
        "timeout_ms": venue.timeout_ms,
        "request_expiry_ms": venue.request_expiry_ms,
        "absence": str(venue.absence),
    }
    account, _ = Account.objects.get_or_create(name=name, defaults=facts)
    # Without the lock of update_or_create, which would stand in the way of a running journal.
    Account.objects.filter(pk=account.pk).exclude(**facts).update(**facts)
    Lease.objects.get_or_create(account=account)
    account.markets.exclude(symbol__in=venue.symbols).filter(active=True).update(active=False)
    for symbol in venue.symbols:
        base, _, quote = symbol.partition("/")
        facts = {"active": True, "base": base, "quote": quote.partition(":")[0]}
        market, _ = Market.objects.get_or_create(account=account, symbol=symbol, defaults=facts)
        Market.objects.filter(pk=market.pk, active=False).update(active=True)


_NAMED: Prepared[Market] = Prepared(
    lambda account_id, symbols: Market.objects.filter(account_id=account_id, symbol__in=symbols)
)


def learn_rules(account_id: int, rules: Mapping[str, MarketInfo]) -> None:
    """Keep the venue's steps and limits beside the markets, as text."""
    for market in _NAMED.rows(account_id, list(rules)):
        info = rules[market.symbol]
        known = {
            name: str(value)
            for name in (
                "quantity_step",
                "price_tick",
                "min_quantity",
                "max_quantity",
                "min_notional",
            )
            if (value := getattr(info, name)) is not None
        }
        if (market.rules, market.base, market.quote) != (known, info.base, info.quote):
            Market.objects.filter(pk=market.pk).update(
                rules=known, base=info.base, quote=info.quote
            )


def is_simulated(account: Account) -> bool:
    """Whether the account is marked as simulated, for the badge that nobody may overlook."""
    return bool(settings.ORDERDESK_DEMO) or account.sandbox
