"""What a caller sends: validated field by field, then handed to intake as a Decision."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any, TypeVar

from ninja import Schema
from pydantic import BeforeValidator, ConfigDict, Field, ValidationError

from orders.api.body import storable
from orders.api.problems import clean, invalid_fields
from orders.intake import Decision

_INSTANT = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)", re.ASCII | re.IGNORECASE
)
_MAX_DIGITS = 64  # left and right of the point; intake has the finer bound
_MAX_TEXT = 2000
_MAX_EXACT = 2**53  # above it JSON readers disagree about whole numbers


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"is text, not {_kind(value)}")  # noqa: TRY004  pydantic reports these
    if len(value) > _MAX_TEXT or not storable(value):
        raise ValueError(f"is at most {_MAX_TEXT} characters of text, none of them NUL")
    return value


def _yes_or_no(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"is true or false, not {_kind(value)}")  # noqa: TRY004
    return value


def _number(value: Any) -> Decimal:
    """Text or a JSON number, exactly as written."""
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        raise ValueError(f"is a decimal number as text, e.g. '0.25', not {_kind(value)}")  # noqa: TRY004
    if isinstance(value, str) and not re.fullmatch(r"[+-]?\d+(\.\d+)?", value, re.ASCII):
        raise ValueError(f"{value[:40]!r} is not a decimal number such as '0.25'")
    if len(str(value)) > 2 * _MAX_DIGITS:
        raise ValueError("has too many digits")
    number = Decimal(value)
    if number and not -_MAX_DIGITS < number.adjusted() < _MAX_DIGITS:
        raise ValueError("has too many digits")
    return number


def _instant(value: Any) -> datetime:
    """Finer digits than microseconds are refused, not cut: the instant names the decision."""
    if not isinstance(value, str) or not _INSTANT.fullmatch(value):
        raise ValueError(
            "is an instant with its UTC offset and at most six decimals, "
            "e.g. '2026-01-31T12:00:00.123456Z'"
        )
    try:
        return datetime.fromisoformat(value.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(f"{value!r} is not on the calendar") from None


def _params(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"is an object, not {_kind(value)}")  # noqa: TRY004
    _check_params(value)
    return value


def _check_params(value: Any) -> None:
    """What goes to the venue is exact: text, whole numbers, true, false and null."""
    match value:
        case dict():
            for name, inner in value.items():
                _check_params(name)
                _check_params(inner)
        case list():
            for inner in value:
                _check_params(inner)
        case Decimal():
            raise ValueError(f"holds the number {value}; write it as text, so that it stays exact")
        case str() if not storable(value):
            raise ValueError("holds text with a NUL or half a character")
        case int() if not -_MAX_EXACT < value < _MAX_EXACT:
            raise ValueError("holds a whole number above 2**53; write it as text")


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | Decimal():
            return "a number"
        case str():
            return "text"
        case list():
            return "a list"
    return "an object"


def _or_null(check: Callable[[Any], Any]) -> BeforeValidator:
    return BeforeValidator(
        lambda value: None if value is None else check(value), json_schema_input_type=str | None
    )


Text = Annotated[str, BeforeValidator(_text, json_schema_input_type=str)]
TextOrNull = Annotated[str | None, _or_null(_text)]
Flag = Annotated[bool, BeforeValidator(_yes_or_no, json_schema_input_type=bool)]
Number = Annotated[Decimal, BeforeValidator(_number, json_schema_input_type=str)]
NumberOrNull = Annotated[Decimal | None, _or_null(_number)]
Instant = Annotated[datetime, BeforeValidator(_instant, json_schema_input_type=str)]
Params = Annotated[dict[str, Any], BeforeValidator(_params, json_schema_input_type=dict[str, Any])]


class DecisionIn(Schema):
    """What a strategy wants, with the instant it was decided."""

    model_config = ConfigDict(extra="forbid")

    account: Text = Field(description="a name from the account file", examples=["main"])
    strategy: Text = Field(description="who decides", examples=["breakout"])
    symbol: Text = Field(description="as in the account file", examples=["BTC/USDT"])
    side: Text = Field(description="buy or sell", examples=["buy"])
    type: Text = Field(description="market or limit", examples=["limit"])
    quantity: Number = Field(description="of the base currency, decimal text", examples=["0.25"])
    price: NumberOrNull = Field(
        None, description="of the quote currency, decimal text; limit only", examples=["61250.10"]
    )
    decided_at: Instant = Field(
        description="ISO 8601 with an offset; the same instant on every repetition",
        examples=["2026-01-31T12:00:00.123456Z"],
    )
    key: TextOrNull = Field(
        None,
        description="names the decision, instead of symbol, side and decided_at; up to 200 "
        "characters; also as the header Idempotency-Key",
        examples=["breakout-2026-01-31-17"],
    )
    valid_for_s: NumberOrNull = Field(
        None,
        description="seconds from decided_at after which it is never sent; default 60",
        examples=[60],
    )
    time_in_force: TextOrNull = Field(None, description="GTC, IOC or FOK", examples=["GTC"])
    post_only: Flag = Field(False, description="rest or be refused")
    reduce_only: Flag = Field(False, description="derivatives only")
    stop_price: NumberOrNull = Field(None, description="not supported yet")
    params: Params = Field(
        default_factory=dict,
        description="more parameters for the venue: text, whole numbers, true, false",
    )

    def decision(self, key: str) -> Decision:
        return Decision(
            account=self.account,
            strategy=self.strategy,
            symbol=self.symbol,
            side=self.side,
            type=self.type,
            quantity=self.quantity,
            decided_at=self.decided_at,
            price=self.price,
            key=key,
            valid_for_s=None if self.valid_for_s is None else float(self.valid_for_s),
            time_in_force=self.time_in_force,
            post_only=self.post_only,
            reduce_only=self.reduce_only,
            stop_price=self.stop_price,
            params=self.params,
        )


class ReasonIn(Schema):
    """Why; the journal keeps it."""

    model_config = ConfigDict(extra="forbid")

    reason: Text = Field("", description="up to 2000 characters", examples=["venue maintenance"])


class NoteIn(Schema):
    """What is being done about it; the journal keeps it."""

    model_config = ConfigDict(extra="forbid")

    note: Text = Field("", description="up to 2000 characters", examples=["asked the venue"])


Form = TypeVar("Form", bound=Schema)


def parse(form: type[Form], data: Any) -> Form:
    """Raises ProblemError 422 that lists every field that is wrong."""
    if not isinstance(data, Mapping):
        raise invalid_fields([{"field": "body", "message": f"is an object, not {_kind(data)}"}])
    try:
        return form.model_validate(data)
    except ValidationError as error:
        names = list(form.model_fields)
        raise invalid_fields([_error(dict(item), names) for item in error.errors()]) from None


def _error(item: dict[str, Any], known: list[str]) -> dict[str, str]:
    name = str(item["loc"][0])
    match item["type"]:
        case "missing":
            message = "is missing"
        case "extra_forbidden":
            near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
            hint = f"do you mean {near[0]!r}?" if near else f"the fields are {', '.join(known)}"
            message = f"is not a field; {hint}"
        case _:
            message = clean(str(item["msg"]))
    return {"field": name[:64], "message": message}
