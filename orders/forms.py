"""What people type: reasons, notes, and orders by hand."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from django import forms

from orders.accounts import is_simulated
from orders.clock import SYSTEM
from orders.identity import instant
from orders.intake import TIMES_IN_FORCE, Decision, DecisionError
from orders.models import Market
from orders.operate import MAX_REASON
from orders.queries.board import REAL, SIMULATED

STRATEGY = "manual"
WAITS_S = ((10, "10 seconds"), (60, "1 minute"), (600, "10 minutes"), (3600, "1 hour"))
DEFAULT_WAIT_S = 60


class ReasonForm(forms.Form):
    """Why somebody acts. The journal keeps it."""

    reason = forms.CharField(
        max_length=MAX_REASON,
        strip=True,
        widget=forms.Textarea(attrs={"rows": 3, "autocomplete": "off"}),
        error_messages={"required": "Say why: the reason is kept in the journal."},
    )

    def __init__(self, *args: Any, label: str, required: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["reason"].label = label if required else f"{label} (optional)"
        self.fields["reason"].required = required


if TYPE_CHECKING:
    _MarketChoice = forms.ModelChoiceField[Market]
else:
    _MarketChoice = forms.ModelChoiceField


class MarketField(_MarketChoice):
    def label_from_instance(self, obj: Market) -> str:
        mode = SIMULATED if is_simulated(obj.account) else REAL
        halted = " (HALTED)" if obj.state == "HALTED" else ""
        return f"{obj.account.name} · {obj.symbol} · {mode}{halted}"


class TicketForm(forms.Form):
    """An order by hand.

    `key` and `decided_at` are made with the form and come back with it, so that a double click, a
    reload and a re-post are one decision. What is right for the market is intake's to judge.
    """

    # What intake calls a field, and where the page shows its error.
    PLACES = {"account": "market", "symbol": "market", "valid_for_s": "valid_for_s"}

    key = forms.CharField(max_length=64, widget=forms.HiddenInput)
    decided_at = forms.CharField(max_length=40, widget=forms.HiddenInput)
    market = MarketField(
        queryset=Market.objects.none(),
        empty_label="Choose a market",
        error_messages={"required": "Choose the market.", "invalid_choice": "Not a market here."},
    )
    side = forms.ChoiceField(
        choices=[("buy", "Buy"), ("sell", "Sell")],
        widget=forms.RadioSelect,
        error_messages={"required": "Choose buy or sell."},
    )
    type = forms.ChoiceField(
        choices=[("limit", "Limit"), ("market", "Market")],
        initial="limit",
        widget=forms.RadioSelect,
        error_messages={"required": "Choose limit or market."},
    )
    quantity = forms.CharField(
        max_length=60,
        help_text="In the base currency, for example 0.25.",
        error_messages={"required": "Say how much."},
        widget=forms.TextInput(attrs={"inputmode": "decimal"}),
    )
    price = forms.CharField(
        max_length=60,
        required=False,
        help_text="In the quote currency. Leave it empty for a market order.",
        widget=forms.TextInput(attrs={"inputmode": "decimal"}),
    )
    time_in_force = forms.ChoiceField(
        choices=[("", "Venue's default"), *((name, name) for name in TIMES_IN_FORCE)],
        required=False,
        help_text="Limit orders only.",
    )
    post_only = forms.BooleanField(required=False, label="Post only: never take, only rest")
    valid_for_s = forms.TypedChoiceField(
        label="Send within",
        choices=WAITS_S,
        coerce=int,
        initial=DEFAULT_WAIT_S,
        help_text="If it cannot be sent by then, it is never sent.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["market"]
        assert isinstance(field, MarketField)
        field.queryset = (
            Market.objects.filter(active=True, account__active=True)
            .select_related("account")
            .order_by("account__name", "symbol")
        )

    @staticmethod
    def fresh() -> dict[str, str]:
        """The key and the instant of a new decision."""
        return {"key": secrets.token_urlsafe(18), "decided_at": instant(SYSTEM.now())}

    def clean_quantity(self) -> str:
        return _number(self.cleaned_data["quantity"])

    def clean_price(self) -> str:
        return _number(self.cleaned_data["price"])

    def clean(self) -> dict[str, Any]:
        """Whether the fields fit together. Every error shows at once, intake's only one by one."""
        super().clean()
        data, limit = self.cleaned_data, self.cleaned_data.get("type") == "limit"
        if limit and data.get("price") == "":
            self.add_error("price", "A limit order needs one.")
        if data.get("type") == "market":
            if data.get("price"):
                self.add_error("price", "A market order takes none: empty it, or choose limit.")
            if data.get("time_in_force"):
                self.add_error("time_in_force", "Is for limit orders only.")
        if data.get("post_only") and not (limit and data.get("time_in_force") in ("", "GTC")):
            self.add_error("post_only", "Is for limit orders that may rest (GTC).")
        return data

    def clean_decided_at(self) -> datetime:
        try:
            at = datetime.fromisoformat(self.cleaned_data["decided_at"])
            return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
        except (ValueError, OverflowError):
            raise forms.ValidationError("This ticket is damaged: take a new one.") from None

    def decision(self) -> Decision:
        """What the ticket says. Only for a valid form."""
        data = self.cleaned_data
        market: Market = data["market"]
        return Decision(
            account=market.account.name,
            strategy=STRATEGY,
            symbol=market.symbol,
            side=data["side"],
            type=data["type"],
            quantity=data["quantity"],
            price=data["price"] or None,
            decided_at=data["decided_at"],
            key=data["key"],
            valid_for_s=data["valid_for_s"],
            time_in_force=data["time_in_force"] or None,
            post_only=data["post_only"],
        )

    def renew(self) -> None:
        """Another decision with the same contents: for a ticket that was never recorded."""
        self.data = {**{name: self.data[name] for name in self.data}, **self.fresh()}

    def refuse(self, error: DecisionError) -> None:
        """Show what intake said, at the field that it named."""
        place = self.PLACES.get(error.field, error.field)
        shown = place if place in self.fields and not self.fields[place].widget.is_hidden else None
        message = error.message[:1].upper() + error.message[1:]
        self.add_error(shown, message if shown else f"{error.field}: {error.message}")


def _number(text: str) -> str:
    """Without the spaces that people put between thousands. A comma is ambiguous: refused."""
    if "," in text:
        raise forms.ValidationError("Write a point before the decimals and no comma: 1234.5")
    text = "".join(text.split())
    if not text:
        return ""
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise forms.ValidationError(f"{text[:40]!r} is not a decimal number.") from None
    if not number.is_finite() or number <= 0:
        raise forms.ValidationError("Must be above zero.")
    return text
