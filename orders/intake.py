"""Admits a decision once: validates it, names it, journals it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from django.conf import settings

from orders import identity, journal
from orders.clock import SYSTEM
from orders.fields import plain
from orders.models import Account, Desk, Intent, Market
from orders.prepared import Prepared
from venues.profiles import profile_of

DEFAULT_VALID_FOR_S = 60
MAX_VALID_FOR_S = 24 * 3600
MAX_AHEAD_S = 5  # how far a caller's clock may be ahead of ours
MAX_LIST = 500
MAX_DIGITS = 40
TIMES_IN_FORCE = ("GTC", "IOC", "FOK")
# Names that would let `params` overrule what the desk decides about a request.
RESERVED_PARAMS = frozenset(
    [
        "amount",
        "clientid",
        "client_id",
        "clientoid",
        "client_oid",
        "clientorderid",
        "cloid",
        "label",
        "link",
        "newclientorderid",
        "newclientorderrespid",
        "newclientorderresptype",
        "orderlinkid",
        "origclientorderid",
        "postonly",
        "price",
        "quantity",
        "quoteorderqty",
        "recvwindow",
        "reduceonly",
        "side",
        "signature",
        "stoploss",
        "stopprice",
        "symbol",
        "takeprofit",
        "test",
        "timeinforce",
        "timestamp",
        "trailingdelta",
        "triggerprice",
        "type",
    ]
)


class DecisionError(Exception):
    """The decision cannot be admitted and was not recorded. `field` names what is wrong."""

    def __init__(self, code: str, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.code = code
        self.field = field
        self.message = message


class KeyReusedError(DecisionError):
    """The key was admitted with other contents."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What a strategy or a trader wants, with the instant it was decided.

    quantity is in the base currency, price in the quote currency: Decimal, int or text, never
    float. decided_at is aware. Without `key` the decision is named by account, strategy, symbol,
    side and decided_at. valid_for_s counts from decided_at: later the order is never sent.
    """

    account: str
    strategy: str
    symbol: str
    side: str
    type: str
    quantity: Decimal | str | int
    decided_at: datetime
    price: Decimal | str | int | None = None
    key: str = ""
    valid_for_s: float | None = None
    time_in_force: str | None = None
    post_only: bool = False
    reduce_only: bool = False
    stop_price: Decimal | str | int | None = None
    params: Mapping[str, Any] = field(default_factory=dict)


def submit(decision: Decision, *, actor: str = "python") -> Intent:
    """Admit a decision and return its intent, which may be DENIED, or be there already.

    Durable on return. Raises DecisionError for a decision that is invalid or stale, and its
    subclass KeyReusedError where the key stands for other contents.
    """
    answer = submit_many([decision], actor=actor)[0]
    if isinstance(answer, DecisionError):
        raise answer
    return answer.intent


def submit_many(
    decisions: Sequence[Decision], *, actor: str
) -> list[journal.Admission | DecisionError]:
    """Admit up to MAX_LIST decisions in one transaction, each answered for itself, in order."""
    if len(decisions) > MAX_LIST:
        raise DecisionError(
            "invalid", "list", f"at most {MAX_LIST} decisions, got {len(decisions)}"
        )
    now, desk = SYSTEM.now(), _Known()
    answers: list[journal.Admission | DecisionError | None] = [None] * len(decisions)
    new: list[tuple[int, Intent]] = []
    for place, decision in enumerate(decisions):
        try:
            found = _prepare(decision, now, desk)
        except DecisionError as error:
            answers[place] = error
            continue
        if isinstance(found, journal.Admission):
            answers[place] = found
        else:
            new.append((place, found))
    for (place, intent), admitted in zip(new, _admit(new, actor, now), strict=True):
        answers[place] = _settle(intent, admitted)
    return [answer for answer in answers if answer is not None]


def _admit(
    new: Sequence[tuple[int, Intent]], actor: str, now: datetime
) -> list[journal.Admission | journal.CollisionError]:
    return journal.admit([intent for _, intent in new], actor=actor, at=now) if new else []


def _settle(
    wanted: Intent, admitted: journal.Admission | journal.CollisionError
) -> journal.Admission | DecisionError:
    """What to answer where the row was there already: its record, if the contents are the same."""
    if isinstance(admitted, journal.CollisionError):
        return DecisionError("id_collision", "decided_at", str(admitted))
    if admitted.created:
        return admitted
    if wrong := _difference(admitted.intent.contents, wanted.contents):
        return KeyReusedError("key_reused", "key" if wanted.key else "decided_at", wrong)
    return admitted


def _prepare(decision: Decision, now: datetime, desk: _Known) -> journal.Admission | Intent:
    """The row to write, or the recorded answer."""
    _check_names(decision)
    account, market = desk.market(decision.account, decision.symbol)
    contents = _contents(decision)
    _check_horizon(decision.decided_at, now)
    key = identity.decision_key(
        account=account.name,
        strategy=decision.strategy,
        symbol=decision.symbol,
        side=decision.side,
        decided_at=decision.decided_at,
        key=decision.key,
    )
    valid_for = timedelta(seconds=float(contents["valid_for_s"]))
    name = identity.client_order_id(desk.prefix, key, profile_of(account.exchange).id_format)
    intent = _intent(decision, market, contents, key, name)
    intent.valid_until = intent.decided_at + valid_for
    existing = journal.find(account.pk, key)
    if existing is not None:
        answer = _settle(intent, journal.Admission(existing, created=False))
        if isinstance(answer, DecisionError):
            raise answer
        return answer
    if intent.valid_until <= now:
        raise DecisionError(
            "stale",
            "decided_at",
            f"decided {_age(decision.decided_at, now)} ago and valid for "
            f"{contents['valid_for_s']} s only; decide anew, or raise valid_for_s",
        )
    return intent


def _intent(
    decision: Decision, market: Market, contents: dict[str, Any], key: str, name: str
) -> Intent:
    price = contents["price"]
    return Intent(
        account=market.account,
        market=market,
        strategy=decision.strategy,
        symbol=decision.symbol,
        side=decision.side,
        type=decision.type,
        quantity=Decimal(contents["quantity"]),
        price=None if price is None else Decimal(price),
        time_in_force=contents["time_in_force"] or "",
        post_only=decision.post_only,
        reduce_only=decision.reduce_only,
        params=contents["params"],
        decided_at=decision.decided_at.astimezone(UTC),
        key=decision.key,
        decision_key=key,
        contents=contents,
        client_order_id=name,
    )


class _Known:
    """What one call reads of the desk, once for all its decisions."""

    def __init__(self) -> None:
        self.prefix = _DESK.rows()[0].prefix
        self._markets: dict[tuple[str, str], Market] = {}

    def market(self, account: str, symbol: str) -> tuple[Account, Market]:
        """The account and its market. Raises DecisionError, naming what there is."""
        if (account, symbol) not in self._markets:
            self._markets[account, symbol] = _market(account, symbol)
        market = self._markets[account, symbol]
        return market.account, market


def _market(name: str, symbol: str) -> Market:
    market = _MARKET.first(name, symbol)
    if market is not None:
        return market
    account = Account.objects.filter(name=name, active=True).first()
    if account is None:
        names = ", ".join(Account.objects.filter(active=True).values_list("name", flat=True)[:20])
        raise _invalid("account", f"unknown account {name!r}; known: {names}")
    symbols = ", ".join(account.markets.filter(active=True).values_list("symbol", flat=True)[:20])
    raise _invalid(
        "symbol", f"{symbol!r} is not a symbol of account {name!r}; its symbols: {symbols}"
    )


_DESK: Prepared[Desk] = Prepared(Desk.objects.all)
_MARKET: Prepared[Market] = Prepared(
    lambda name, symbol: Market.objects.select_related("account").filter(
        account__name=name, account__active=True, active=True, symbol=symbol
    )
)


def _contents(decision: Decision) -> dict[str, Any]:
    """The decision in canonical form, checked field by field."""
    if decision.side not in ("buy", "sell"):
        raise _invalid("side", f"is buy or sell, not {decision.side!r}")
    if decision.type not in ("market", "limit"):
        raise _invalid("type", f"is market or limit, not {decision.type!r}")
    price = _price(decision)
    _check_options(decision)
    return {
        "symbol": decision.symbol,
        "side": decision.side,
        "type": decision.type,
        "quantity": _number("quantity", decision.quantity),
        "price": price,
        "time_in_force": decision.time_in_force,
        "post_only": decision.post_only,
        "reduce_only": decision.reduce_only,
        "params": _params(decision.params),
        "decided_at": _instant(decision.decided_at),
        "valid_for_s": _valid_for(decision.valid_for_s),
    }


def _check_names(decision: Decision) -> None:
    for name, text, most in (
        ("account", decision.account, 64),
        ("symbol", decision.symbol, 64),
        ("strategy", decision.strategy, 64),
        ("key", decision.key, 200),
    ):
        if len(text) > most or not all(char.isprintable() for char in text):
            raise _invalid(name, f"is at most {most} printable characters")
    if not decision.strategy:
        raise _invalid("strategy", "is missing; name the strategy that decides")


def _price(decision: Decision) -> str | None:
    if decision.type == "limit":
        if decision.price is None:
            raise _invalid("price", "a limit order needs one")
        return _number("price", decision.price)
    if decision.price is not None:
        raise _invalid("price", "a market order takes none; leave it out, or use type limit")
    return None


def _check_options(decision: Decision) -> None:
    tif = decision.time_in_force
    if tif is not None and (tif not in TIMES_IN_FORCE or decision.type == "market"):
        raise _invalid("time_in_force", f"is one of {', '.join(TIMES_IN_FORCE)}, limit orders only")
    if decision.post_only and (decision.type == "market" or tif in ("IOC", "FOK")):
        raise _invalid("post_only", "is for limit orders that may rest (GTC)")
    if decision.reduce_only:
        raise _invalid("reduce_only", "is for derivatives; this account trades spot")
    if decision.stop_price is not None:
        raise _invalid("stop_price", "conditional orders are not supported; leave it out")


def _params(params: Mapping[str, Any]) -> dict[str, Any]:
    """The caller's extra parameters for the venue, in the form that the database returns."""
    for name in params:
        if name.lower().replace("-", "").replace("_", "") in _RESERVED:
            raise _invalid(
                "params", f"{name!r} is the desk's to set; use the field of that meaning"
            )
        if not _exact(params[name]):
            raise _invalid("params", f"{name!r} holds a fraction: write it as text")
    text = json.dumps(dict(params))
    if "\\u0000" in text:
        raise _invalid("params", "must not contain the character NUL")
    return dict(json.loads(text))


_RESERVED = frozenset(name.replace("_", "") for name in RESERVED_PARAMS)


def _exact(value: Any) -> bool:
    """Whether every database gives it back as it was: fractions may come back as other numbers."""
    if isinstance(value, dict):
        return all(isinstance(name, str) and _exact(item) for name, item in value.items())
    if isinstance(value, list | tuple):
        return all(map(_exact, value))
    return isinstance(value, str | int | None)


def _number(name: str, value: Decimal | str | int) -> str:
    if isinstance(value, float | bool):
        raise _invalid(name, "is a decimal number as text, e.g. '0.25': a float is not exact")
    try:
        number = Decimal(value)
    except (InvalidOperation, TypeError, ValueError):
        raise _invalid(name, f"{str(value)[:40]!r} is not a decimal number") from None
    if not number.is_finite() or number <= 0:
        raise _invalid(name, "must be above zero")
    exponent = number.as_tuple().exponent
    if not isinstance(exponent, int) or number.adjusted() >= MAX_DIGITS or exponent < -MAX_DIGITS:
        raise _invalid(name, f"has more than {MAX_DIGITS} digits")
    text = plain(number)
    if len(text) > MAX_DIGITS:
        raise _invalid(name, f"has more than {MAX_DIGITS} digits")
    return text


def _instant(at: datetime) -> str:
    try:
        return identity.instant(at)
    except (ValueError, OverflowError) as error:
        raise _invalid("decided_at", str(error)) from None


def _valid_for(seconds: float | None) -> str:
    value = DEFAULT_VALID_FOR_S if seconds is None else seconds
    if not math.isfinite(value) or not 0 < value <= MAX_VALID_FOR_S:
        raise _invalid("valid_for_s", f"is above 0 and at most {MAX_VALID_FOR_S} seconds")
    return plain(Decimal(str(value)))


def _check_horizon(decided_at: datetime, now: datetime) -> None:
    """A decision older than any key is kept for could be a duplicate that nobody remembers."""
    horizon = timedelta(seconds=settings.ORDERDESK_HORIZON_S)
    if decided_at < now - horizon:
        raise DecisionError(
            "stale",
            "decided_at",
            f"decided {_age(decided_at, now)} ago; decisions older than "
            f"{horizon.total_seconds():.0f} s are refused; decide anew",
        )
    if decided_at > now + timedelta(seconds=MAX_AHEAD_S):
        raise _invalid(
            "decided_at", f"is in the future by {_age(now, decided_at)}; check the caller's clock"
        )


def _difference(recorded: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """Names every field that differs, with both values; "" for none."""
    different = [
        f"{name} was {recorded.get(name)!r}, is now {wanted.get(name)!r}"
        for name in sorted({*recorded, *wanted})
        if recorded.get(name) != wanted.get(name)
    ]
    return "recorded with other contents: " + "; ".join(different) if different else ""


def _age(then: datetime, now: datetime) -> str:
    return str(timedelta(seconds=round((now - then).total_seconds())))


def _invalid(name: str, message: str) -> DecisionError:
    return DecisionError("invalid", name, message)
