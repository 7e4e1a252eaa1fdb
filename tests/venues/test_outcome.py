"""The closed world of answers: every definite row, and that nothing else is definite."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from venues.gateway import Outcome
from venues.outcome import BINANCE, COMMON, TABLES, Accepted, Answer, OrderName, Refused, classify

OURS = OrderName("aaaabbbbccccdddd01", "BTC/USDT", "buy")
ACCEPTED = Answer(sent=True, ours=OURS, status=200, whole=True, venue_order_id="28", returned=OURS)


def refusal(status: int, code: int, words: str = "") -> Answer:
    return Answer(sent=True, ours=OURS, status=status, whole=True, code=str(code), message=words)


def unsent(*errors: str, after_another: bool = False) -> Answer:
    return Answer(sent=False, ours=OURS, errors=errors, after_another=after_another)


R, N, D, U, A = (
    Outcome.REJECTED,
    Outcome.NOT_PLACED,
    Outcome.DUPLICATE,
    Outcome.UNKNOWN,
    Outcome.ACCEPTED,
)

# Written from the venue's documentation, not from the table.
EXPECTED = {
    "accepted": (ACCEPTED, A),
    "insufficient balance": (
        refusal(400, -2010, "Account has insufficient balance for requested action."),
        R,
    ),
    "duplicate": (refusal(400, -2010, "Duplicate order sent."), D),
    "new order rejected, unknown words": (refusal(400, -2010, "Not today."), U),
    "new order rejected, no words": (refusal(400, -2010), U),
    "lot size": (refusal(400, -1013, "Filter failure: LOT_SIZE"), R),
    "notional": (refusal(400, -1013, "Filter failure: NOTIONAL"), R),
    "bad symbol": (refusal(400, -1121, "Invalid symbol."), R),
    "illegal characters": (refusal(400, -1100, "Illegal characters found in a parameter."), R),
    "missing parameter": (refusal(400, -1102), R),
    "unneeded parameter": (refusal(400, -1106), R),
    "too precise": (refusal(400, -1111), R),
    "window too long": (refusal(400, -1131), R),
    "bad signature": (refusal(400, -1022), R),
    "bad key": (refusal(401, -2014, "API-key format invalid."), R),
    "no permission": (refusal(401, -2015), R),
    "no permission, 400": (refusal(400, -2015), R),
    "would match": (refusal(400, -2010, "Order would immediately match and take."), R),
    "market closed": (refusal(400, -2010, "Market is closed."), R),
    "too old": (refusal(400, -1021, "Timestamp for this request is outside of the recvWindow."), N),
    "weight": (refusal(429, -1003, "Too much request weight used"), N),
    "banned": (refusal(418, -1003, "IP banned until 1796093079247."), N),
    "order rate": (refusal(429, -1015, "Too many new orders."), N),
    "unknown error": (refusal(400, -1000), U),
    "disconnected": (refusal(400, -1001), U),
    "unexpected response": (refusal(400, -1006), U),
    "time-out at the venue, 400": (refusal(400, -1007), U),
    "time-out at the venue, 408": (refusal(408, -1007), U),
    "overloaded": (refusal(400, -1008), U),
    "503 unknown error": (refusal(503, -1000, "Unknown error, please check your request"), U),
    "balance inside a 503": (
        refusal(503, -2010, "Account has insufficient balance for requested action."),
        U,
    ),
    "filter inside a 500": (refusal(500, -1013), U),
    "too old inside a 504": (refusal(504, -1021), U),
    "duplicate inside a 500": (refusal(500, -2010, "Duplicate order sent."), U),
    "refusal with status 200": (refusal(200, -1013), U),
    "429 of a proxy, without a code": (Answer(sent=True, ours=OURS, status=429), U),
    "418 without a code": (Answer(sent=True, ours=OURS, status=418), U),
    "403 of the firewall": (Answer(sent=True, ours=OURS, status=403), U),
    "rate code with another status": (refusal(400, -1003), U),
    "redirect": (Answer(sent=True, ours=OURS, status=307), U),
    "time-out": (Answer(sent=True, ours=OURS, errors=("RequestTimeout", "NetworkError")), U),
    "reset": (Answer(sent=True, ours=OURS, errors=("ExchangeNotAvailable", "NetworkError")), U),
    "half a body": (Answer(sent=True, ours=OURS, status=200, errors=("ExchangeError",)), U),
    "HTML with 200": (Answer(sent=True, ours=OURS, status=200), U),
    "{} with 200": (Answer(sent=True, ours=OURS, status=200, whole=True), U),
    "no order ID": (replace(ACCEPTED, venue_order_id=""), U),
    "not our ID": (replace(ACCEPTED, returned=replace(OURS, client_order_id="other")), U),
    "not our symbol": (replace(ACCEPTED, returned=replace(OURS, symbol="ETH/USDT")), U),
    "not our side": (replace(ACCEPTED, returned=replace(OURS, side="sell")), U),
    "an order with 201": (replace(ACCEPTED, status=201), U),
    "an order with 500": (replace(ACCEPTED, status=500), U),
    "an order beside an error code": (replace(ACCEPTED, code="-1000"), U),
    "BadRequest after a send": (Answer(sent=True, ours=OURS, errors=("BadRequest",)), U),
    "InvalidOrder after a send": (Answer(sent=True, ours=OURS, errors=("InvalidOrder",)), U),
    "refused connection": (unsent("ExchangeNotAvailable", "NetworkError"), N),
    "no permit": (unsent("SendRefusedError"), N),
    "permit used before": (unsent("PermitUsedError", "RuntimeError"), U),
    "refused here": (unsent("OrderRefusedError", "ValueError"), R),
    "refused by ccxt": (unsent("ArgumentsRequired", "ExchangeError"), R),
    "a request before the order was refused": (unsent("BadSymbol", after_another=True), N),
    "nothing known, nothing sent": (unsent(), N),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_an_answer_proves_what_the_documentation_says(name: str) -> None:
    answer, outcome = EXPECTED[name]
    assert classify(answer, "binance")[0] is outcome


@pytest.mark.parametrize("row", BINANCE, ids=lambda row: f"{row.code} {row.words}".strip())
def test_each_refusal_counts_with_its_own_status_and_code_only(row: Refused) -> None:
    for status in row.statuses:
        answer = refusal(status, int(row.code), row.words)
        assert classify(answer, "binance") == (row.outcome, row.why)
        assert classify(replace(answer, whole=False), "binance")[0] is U
        assert classify(replace(answer, sent=False), "binance")[0] is N
    for status in (200, 201, 307, 403, 408, 409, 500, 502, 503, 504):
        assert classify(refusal(status, int(row.code), row.words), "binance")[0] is U


def test_every_definite_row_says_why_and_none_hides_another() -> None:
    rows = [row for row in BINANCE if isinstance(row, Refused)]
    assert all(row.why for row in (*COMMON, *BINANCE))
    assert len({(row.code, row.words) for row in rows}) == len(rows)


def test_a_venue_without_a_table_has_no_definite_refusal() -> None:
    assert classify(refusal(400, -1013), "unheard-of")[0] is U
    assert classify(ACCEPTED, "unheard-of")[0] is A
    assert all(set(COMMON) <= set(rows) for rows in TABLES.values())


LISTED = {(r.code, at) for r in BINANCE if isinstance(r, Refused) for at in r.statuses}
names = st.builds(OrderName, st.text(max_size=20), st.text(max_size=8), st.text(max_size=4))
words = st.sampled_from(["ExchangeError", "BadRequest", "InvalidOrder", "OrderRefusedError"])


@given(
    status=st.none() | st.integers(100, 599),
    whole=st.booleans(),
    code=st.integers(-9999, 9999).map(str) | st.just(""),
    message=st.text(max_size=60),
    errors=st.lists(words, max_size=3).map(tuple),
    venue_order_id=st.text(max_size=3),
    returned=names | st.none() | st.just(OURS),
)
def test_no_answer_off_the_list_is_ever_definite(
    status: int | None,
    whole: bool,
    code: str,
    message: str,
    errors: tuple[str, ...],
    venue_order_id: str,
    returned: OrderName | None,
) -> None:
    answer = Answer(
        True, OURS, status, whole, code, message, errors, False, venue_order_id, returned
    )
    ours = whole and status == 200 and bool(venue_order_id) and returned == OURS and code == ""
    listed = whole and (code, status) in LISTED
    outcome = classify(answer, "binance")[0]
    if not listed and not ours:
        assert outcome is U
    if status is None or status >= 500 or 300 <= status < 400 or not whole:
        assert outcome is U


def test_the_table_accepts_one_status_only() -> None:
    [row] = [row for row in COMMON if isinstance(row, Accepted)]
    assert row.statuses == {200}
