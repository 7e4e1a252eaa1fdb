"""What the API answers. Numbers are decimal text, instants ISO 8601 in UTC."""

from __future__ import annotations

from typing import Any

from ninja import Schema
from pydantic import ConfigDict, Field


class Out(Schema):
    model_config = ConfigDict(extra="forbid")


class ProblemOut(Schema):
    """Any error. `code` is stable; `detail` is for people."""

    type: str = Field(examples=["urn:orderdesk:problem:invalid"])
    title: str = Field(examples=["Unprocessable Entity"])
    status: int = Field(examples=[422])
    detail: str = Field(examples=["price: a limit order needs one"])
    code: str = Field(examples=["invalid"])
    field: str | None = Field(None, examples=["price"])
    errors: list[dict[str, str]] | None = Field(
        None, examples=[[{"field": "price", "message": "a limit order needs one"}]]
    )


class AdmittedOut(Out):
    """An intent as it was recorded at admission: the same bytes on every repetition."""

    client_order_id: str = Field(examples=["kqzmx3f7ab2cdw5n6p"])
    account: str = Field(examples=["main"])
    strategy: str = Field(examples=["breakout"])
    symbol: str = Field(examples=["BTC/USDT"])
    side: str = Field(examples=["buy"])
    type: str = Field(examples=["limit"])
    quantity: str = Field(examples=["0.25"])
    price: str | None = Field(examples=["61250.1"])
    time_in_force: str | None = Field(examples=["GTC"])
    post_only: bool
    reduce_only: bool
    params: dict[str, Any]
    key: str | None = Field(examples=["breakout-2026-01-31-17"])
    decided_at: str = Field(examples=["2026-01-31T12:00:00.123456Z"])
    valid_until: str = Field(examples=["2026-01-31T12:01:00.123456Z"])
    created_at: str = Field(examples=["2026-01-31T12:00:00.125012Z"])
    submitted_by: str = Field(examples=["token:breakout"])
    state: str = Field(description="INTENT or DENIED", examples=["INTENT"])


class DeniedOut(AdmittedOut):
    """Refused by the desk and recorded under its key: final."""

    code: str = Field("denied", examples=["denied"])
    detail: str = Field(examples=["market halted: venue maintenance (by user:ada)"])


class ItemOut(Out):
    """The answer to one decision of a list."""

    status: int = Field(description="what it would be alone: 201, 409, 422 or 403", examples=[201])
    replayed: bool = Field(description="admitted before; this is the recorded answer")
    intent: AdmittedOut | DeniedOut | None = None
    problem: ProblemOut | None = None


class ItemsOut(Out):
    """In the order of the list that was sent."""

    items: list[ItemOut]


class IntentOut(Out):
    """An intent as it is now."""

    client_order_id: str = Field(examples=["kqzmx3f7ab2cdw5n6p"])
    account: str = Field(examples=["main"])
    strategy: str = Field(examples=["breakout"])
    symbol: str = Field(examples=["BTC/USDT"])
    side: str = Field(examples=["buy"])
    type: str = Field(examples=["limit"])
    quantity: str = Field(examples=["0.25"])
    price: str | None = Field(examples=["61250.1"])
    time_in_force: str | None
    post_only: bool
    reduce_only: bool
    params: dict[str, Any]
    key: str | None
    decided_at: str = Field(examples=["2026-01-31T12:00:00.123456Z"])
    valid_until: str
    created_at: str
    submitted_by: str
    state: str = Field(examples=["LIVE"])
    terminal: bool = Field(description="whether the state is an end")
    reason: str = Field(description="of the last change of state")
    updated_at: str
    version: int = Field(description="the number of its last transition")
    attempt: int = Field(description="how many requests may have been sent", examples=[1])
    venue_order_id: str | None = Field(examples=["28457"])
    filled: str = Field(description="executed, of the base currency", examples=["0.1"])
    average_price: str | None = Field(
        description="of the fills, rounded to 16 digits", examples=["61250.1"]
    )
    cost: str = Field(
        description="price times quantity over the fills, exact", examples=["6125.01"]
    )
    doubt_since: str | None = Field(description="since when its state at the venue is unknown")
    cancel_requested_at: str | None
    cancel_requested_by: str | None


class TransitionOut(Out):
    """One line of the journal."""

    id: int = Field(examples=[4711])
    at: str = Field(examples=["2026-01-31T12:00:00.131072Z"])
    subject: str = Field(description="intent, market, alert or account", examples=["intent"])
    account: str | None = Field(examples=["main"])
    symbol: str | None = Field(examples=["BTC/USDT"])
    client_order_id: str | None = Field(examples=["kqzmx3f7ab2cdw5n6p"])
    alert: int | None
    seq: int | None = Field(description="1, 2, 3 … of its intent", examples=[2])
    event: str = Field(examples=["claimed"])
    from_state: str | None = Field(examples=["INTENT"])
    to_state: str | None = Field(examples=["IN_FLIGHT"])
    actor: str = Field(examples=["lane:host-1:4242"])
    reason: str
    evidence: dict[str, Any] = Field(description="what the venue said, secrets removed")
    attempt: int | None
    epoch: int | None
    act_id: str = Field(description="shared by all lines of one act")


class FillOut(Out):
    """One execution, booked once."""

    venue_trade_id: str = Field(examples=["28457"])
    venue_order_id: str
    side: str = Field(examples=["buy"])
    quantity: str = Field(examples=["0.1"])
    price: str = Field(examples=["61250.1"])
    fee: str = Field(examples=["0.0001"])
    fee_currency: str | None = Field(examples=["BTC"])
    at: str = Field(description="the venue's time")
    booked_at: str


class IntentDetailOut(IntentOut):
    """An intent as it is now, with its journal and its fills."""

    transitions: list[TransitionOut]
    fills: list[FillOut]


class IntentsOut(Out):
    items: list[IntentOut]
    next: str | None = Field(description="cursor of the next, older page; null at the end")


class MarketOut(Out):
    """One symbol of one account."""

    account: str = Field(examples=["main"])
    exchange: str = Field(examples=["binance"])
    symbol: str = Field(examples=["BTC/USDT"])
    state: str = Field(description="OPEN or HALTED", examples=["OPEN"])
    blocked: bool = Field(description="nothing new is sent while an intent is unresolved")
    unresolved: int = Field(description="intents whose state at the venue is not known")
    position: str = Field(description="of the base currency, from the fills", examples=["0.35"])
    base: str | None = Field(examples=["BTC"])
    active: bool = Field(description="whether it is in the account file")
    halted_at: str | None
    halted_reason: str | None
    last_event_at: str | None


class MarketsOut(Out):
    items: list[MarketOut]


class AlertOut(Out):
    """Something that a person must see."""

    id: int = Field(examples=[17])
    account: str | None = Field(examples=["main"])
    symbol: str | None = Field(examples=["BTC/USDT"])
    client_order_id: str | None
    kind: str = Field(examples=["market_halted"])
    severity: str = Field(description="critical, warning or info", examples=["critical"])
    message: str
    remedy: str
    state: str = Field(description="OPEN, ACKNOWLEDGED or RESOLVED", examples=["OPEN"])
    times: int = Field(description="how often it was raised")
    raised_at: str
    last_raised_at: str
    acknowledged_at: str | None
    acknowledged_by: str | None
    note: str | None
    resolved_at: str | None
    resolved_by: str | None


class AlertsOut(Out):
    items: list[AlertOut]
    next: str | None = Field(description="cursor of the next, older page; null at the end")


class TransitionsOut(Out):
    items: list[TransitionOut]
    next_after: int = Field(
        description="`after` of the next call, also when nothing was shown", examples=[4711]
    )
