"""What one answer to one create request proves. Pure: a table, and one function that reads it.

The world is closed: an answer that no row describes proves nothing and is UNKNOWN. That holds for
time-outs, resets, any 5xx, redirects, half a body, pages of HTML, an answer without an order ID,
and one about an order that is not ours. A status belongs to every row, so that a definite code
inside a 5xx proves nothing either.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from venues.gateway import Outcome


@dataclass(frozen=True, slots=True)
class OrderName:
    """What must be equal for an order to be ours."""

    client_order_id: str
    symbol: str
    side: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one create request, as far as it matters here.

    sent: a byte may have left. Only the transport knows; where it is False, none did.
    whole: the body arrived to its end and is the JSON object that the venue's answers are.
    code, message: the venue's own error code and words, "" where it gave none.
    errors: class names of the exception, most special first, with its bases.
    after_another: requests of the same call came before it, so that their failure may be meant.
    """

    sent: bool
    ours: OrderName
    status: int | None = None
    whole: bool = False
    code: str = ""
    message: str = ""
    errors: tuple[str, ...] = ()
    after_another: bool = False
    venue_order_id: str = ""
    returned: OrderName | None = None


@dataclass(frozen=True, slots=True)
class Unsent:
    """A row for requests of which no byte left. Empty `errors` fits every exception."""

    outcome: Outcome
    why: str
    errors: frozenset[str] = frozenset()
    after_another: bool = True  # may fit where other requests came before

    def fits(self, answer: Answer) -> bool:
        return (
            not answer.sent
            and (self.after_another or not answer.after_another)
            and (not self.errors or not self.errors.isdisjoint(answer.errors))
        )


@dataclass(frozen=True, slots=True)
class Refused:
    """A row for answers by which the venue refuses, by code and, where given, by words."""

    outcome: Outcome
    why: str
    code: str
    statuses: frozenset[int]
    words: str = ""

    def fits(self, answer: Answer) -> bool:
        return (
            answer.sent
            and answer.whole
            and answer.status in self.statuses
            and answer.code == self.code
            and self.words in answer.message
        )


@dataclass(frozen=True, slots=True)
class Accepted:
    """The row for an answer that names our order and the venue's own ID of it."""

    outcome: Outcome
    why: str
    statuses: frozenset[int] = frozenset({200})

    def fits(self, answer: Answer) -> bool:
        return (
            answer.sent
            and answer.whole
            and answer.status in self.statuses
            and not answer.code
            and bool(answer.venue_order_id)
            and answer.returned == answer.ours
        )


Row = Unsent | Refused | Accepted

# The first row that fits decides.
COMMON: tuple[Row, ...] = (
    Unsent(
        Outcome.UNKNOWN,
        "the permit was used before: an earlier request of this attempt has left",
        errors=frozenset({"PermitUsedError"}),
    ),
    Unsent(
        Outcome.REJECTED,
        "refused here, before it was sent: a field of the order is wrong for this venue",
        errors=frozenset({"OrderRefusedError"}),
    ),
    Unsent(
        Outcome.REJECTED,
        "refused by ccxt's own checks, before anything was sent",
        errors=frozenset({"ArgumentsRequired", "BadSymbol", "NotSupported", "InvalidOrder"}),
        after_another=False,
    ),
    Unsent(Outcome.NOT_PLACED, "no byte of it left this process"),
    Accepted(Outcome.ACCEPTED, "the venue names our order and its own ID of it"),
)

_BAD = frozenset({400})
_KEY = frozenset({400, 401})
_RATE = frozenset({418, 429})

# Codes of the spot REST API: developers.binance.com, "Error codes". Missing on purpose, because
# the documentation calls the execution status unknown or says nothing of it: -1000, -1001, -1006,
# -1007, -1008, -1010, -1016, -1112.
_BINANCE_CODES: tuple[tuple[str, frozenset[int], str], ...] = (
    ("-1002", _KEY, "not authorized"),
    ("-1013", _BAD, "a filter failed; it did not reach the matching engine"),
    ("-1014", _BAD, "unsupported combination"),
    ("-1020", _BAD, "unsupported operation"),
    ("-1022", _KEY, "the signature is not valid"),
    ("-1100", _BAD, "illegal characters in a parameter"),
    ("-1101", _BAD, "too many parameters"),
    ("-1102", _BAD, "a parameter is missing, empty or malformed"),
    ("-1103", _BAD, "unknown parameter"),
    ("-1104", _BAD, "unread parameters"),
    ("-1105", _BAD, "a parameter is empty"),
    ("-1106", _BAD, "a parameter that the type does not take"),
    ("-1108", _BAD, "a parameter overflowed"),
    ("-1111", _BAD, "too much precision"),
    ("-1114", _BAD, "time in force sent where the type takes none"),
    ("-1115", _BAD, "invalid time in force"),
    ("-1116", _BAD, "invalid order type"),
    ("-1117", _BAD, "invalid side"),
    ("-1118", _BAD, "the client order ID is empty"),
    ("-1121", _BAD, "invalid symbol"),
    ("-1128", _BAD, "a combination of optional parameters is invalid"),
    ("-1130", _BAD, "invalid data in a parameter"),
    ("-1131", _BAD, "recvWindow above its maximum"),
    ("-1134", _BAD, "strategyType too low"),
    ("-1182", _BAD, "conflicting parameters"),
    ("-2014", _KEY, "the API key is malformed"),
    ("-2015", _KEY, "invalid API key, address or permission"),
)

# The same page, "Messages for -1010, -2010 and -2011". With other words -2010 proves nothing:
# it also stands for a duplicate, which may be worded anew.
_BINANCE_WORDS: tuple[str, ...] = (
    "Account has insufficient balance for requested action.",
    "Market is closed.",
    "Market orders are not supported for this symbol.",
    "Iceberg orders are not supported for this symbol.",
    "Price * QTY is zero or less.",
    "IcebergQty exceeds QTY.",
    "This action is disabled on this account.",
    "This account may not place or cancel orders.",
    "Unsupported order combination",
    "Order would immediately match and take.",
    "This symbol is not permitted for this account.",
    "This symbol is restricted for this account.",
    "Rest API trading is not enabled.",
)

BINANCE: tuple[Row, ...] = (
    Refused(Outcome.NOT_PLACED, "refused for its age or its clock", "-1021", _BAD),
    Refused(Outcome.NOT_PLACED, "refused for its rate: too many requests", "-1003", _RATE),
    Refused(Outcome.NOT_PLACED, "refused for its rate: too many orders", "-1015", _RATE),
    Refused(
        Outcome.DUPLICATE,
        "an open order has this client order ID",
        "-2010",
        _BAD,
        words="Duplicate order sent.",
    ),
    *(Refused(Outcome.REJECTED, why, code, statuses) for code, statuses, why in _BINANCE_CODES),
    *(
        Refused(Outcome.REJECTED, f"the matching engine refused it: {words}", "-2010", _BAD, words)
        for words in _BINANCE_WORDS
    ),
)

TABLES: Mapping[str, tuple[Row, ...]] = {"binance": (*COMMON, *BINANCE)}


def classify(answer: Answer, exchange: str) -> tuple[Outcome, str]:
    """What the answer proves, and why, in words for people."""
    for row in TABLES.get(exchange, COMMON):
        if row.fits(answer):
            return row.outcome, row.why
    return Outcome.UNKNOWN, "the answer is not on the list of definite answers"
