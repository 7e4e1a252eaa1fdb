"""The journal is the only writer of state: compare-and-set, append-only, all or nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction

from orders import journal
from orders.journal import BrokenRuleError, Change, Halt
from orders.machine import Event, IllegalEventError, Note, State
from orders.models import Alert, Fill, Intent, Market, Transition
from tests.journal.conftest import ACTOR, World, trade

pytestmark = [pytest.mark.database, pytest.mark.django_db]


def lines(intent: Intent) -> list[tuple[int | None, str, str, str]]:
    rows = Transition.objects.filter(intent=intent, subject="intent").order_by("seq")
    return list(rows.values_list("seq", "event", "from_state", "to_state"))


def test_a_life_is_journaled_step_by_step(world: World) -> None:
    intent = world.in_flight()
    world.step(intent, Event.ACCEPTED, columns={"venue_order_id": "o1"})
    world.step(intent, Event.WORKING)
    world.record(Change(intent.pk, Note.FILL, fills=(trade("t1", "0.4"),)))
    world.record(
        Change(
            intent.pk, Note.FILL, fills=(trade("t2", "0.6"),), columns={"venue_filled": Decimal(1)}
        ),
        Change(intent.pk, Event.FILLED),
    )
    assert lines(intent) == [
        (1, "submitted", "", "INTENT"),
        (2, "claimed", "INTENT", "IN_FLIGHT"),
        (3, "accepted", "IN_FLIGHT", "ACKED"),
        (4, "working", "ACKED", "LIVE"),
        (5, "fill", "LIVE", "LIVE"),
        (6, "fill", "LIVE", "LIVE"),
        (7, "filled", "LIVE", "FILLED"),
    ]
    intent.refresh_from_db()
    assert (intent.filled, intent.cost, intent.known) == (Decimal(1), Decimal(100), True)
    world.btc.refresh_from_db()
    assert world.btc.position == Decimal(1)


def test_an_event_that_the_table_does_not_list_writes_nothing(world: World) -> None:
    intent = world.submit()
    before = Transition.objects.count()
    with pytest.raises(IllegalEventError):
        world.record(Change(intent.pk, Event.FILLED))
    assert Transition.objects.count() == before


def test_one_illegal_change_takes_its_whole_transaction_with_it(world: World) -> None:
    one, two = world.in_flight(), world.submit("ETH/USDT")
    with pytest.raises(IllegalEventError):
        world.record(Change(one.pk, Event.NO_ANSWER), Change(two.pk, Event.FILLED))
    one.refresh_from_db()
    assert one.state == State.IN_FLIGHT


def test_a_change_counts_only_in_the_state_that_was_expected(world: World) -> None:
    intent = world.in_flight()
    world.step(intent, Event.NO_ANSWER)
    done = journal.record(
        [Change(intent.pk, Event.REJECTED, expect=frozenset({State.IN_FLIGHT}))],
        actor=ACTOR,
        at=datetime.now(UTC),
        hold=world.hold,
    )
    assert (done[0].applied, done[0].intent.state) == (False, State.UNKNOWN)


def test_an_answer_to_an_earlier_attempt_says_nothing_about_the_next(world: World) -> None:
    intent = world.in_flight()
    world.step(intent, Event.NOT_PLACED)
    (again,) = world.claim()
    assert again.attempt == 2
    late = world.record(Change(intent.pk, Event.REJECTED, attempt=1))
    assert late.state == State.IN_FLIGHT


def test_a_fill_is_booked_once_whoever_brings_it(world: World) -> None:
    intent = world.in_flight()
    world.step(intent, Event.ACCEPTED)
    fill = Change(intent.pk, Note.FILL, fills=(trade("t1"), trade("t1")))
    world.record(fill, fill)
    world.record(fill)
    intent.refresh_from_db()
    world.btc.refresh_from_db()
    assert intent.filled == world.btc.position == Decimal(1)
    assert Fill.objects.count() == 1
    assert [event for _, event, _, _ in lines(intent)].count("fill") == 1


def test_an_order_cannot_end_while_an_execution_is_not_booked(world: World) -> None:
    intent = world.in_flight()
    world.step(intent, Event.ACCEPTED)
    with pytest.raises(BrokenRuleError):
        world.step(intent, Event.FILLED, columns={"venue_filled": Decimal(1)})
    with pytest.raises(BrokenRuleError):
        world.step(
            intent,
            Event.CANCELED,
            fills=(trade("t1", "0.5"),),
            columns={"venue_filled": Decimal("0.6")},
        )
    assert Fill.objects.count() == 0


def test_what_was_known_to_exist_never_becomes_absent(world: World) -> None:
    intent = world.in_flight()
    world.step(intent, Event.DUPLICATE, columns={"known": True})
    world.step(intent, Event.RECONCILE_STARTED)
    with pytest.raises(BrokenRuleError):
        world.step(intent, Event.ABSENT)


def test_a_contradiction_reopens_and_a_dismissal_restores(world: World) -> None:
    intent = world.in_flight()
    world.step(intent, Event.REJECTED)
    intent = world.step(intent, Event.CONTRADICTED)
    assert (intent.state, intent.former_state, intent.known) == ("RECONCILING", "REJECTED", True)
    assert world.step(intent, Event.DISMISSED).state == State.REJECTED


def test_returns_are_counted_and_doubt_is_dated(world: World) -> None:
    intent = world.in_flight()
    intent = world.step(intent, Event.NO_ANSWER)
    assert intent.doubt_since is not None
    intent = world.step(intent, Event.RECONCILE_STARTED, Event.ABSENT)
    assert (intent.returns, intent.doubt_since) == (1, None)


def test_halting_denies_what_waits_and_tells_people_once(world: World) -> None:
    waiting, other = world.submit(), world.submit("ETH/USDT")
    for _ in range(2):
        journal.halt(Halt(world.btc.pk, "enough"), actor="user:ann", at=datetime.now(UTC))
    waiting.refresh_from_db()
    other.refresh_from_db()
    assert (waiting.state, other.state) == (State.DENIED, State.INTENT)
    alert = Alert.objects.get()
    assert (alert.kind, alert.severity, alert.times) == ("market_halted", "critical", 1)
    assert world.submit().state == State.DENIED
    assert Market.objects.get(pk=world.btc.pk).halted_reason == "enough"


def test_a_market_is_not_resumed_while_anything_is_unresolved(world: World) -> None:
    intent = world.in_flight()
    world.step(intent, Event.NO_ANSWER)
    now = datetime.now(UTC)
    journal.halt(Halt(world.btc.pk, "doubt"), actor=ACTOR, at=now)
    with pytest.raises(journal.RefusedError, match=intent.client_order_id):
        journal.resume(world.btc.pk, actor="user:ann", reason="go", at=now)
    world.step(intent, Event.RECONCILE_STARTED, Event.ABSENT)
    assert world.claim() == []
    assert journal.resume(world.btc.pk, actor="user:ann", reason="go", at=now).state == "OPEN"
    assert Alert.objects.get().state == "RESOLVED"


@pytest.mark.parametrize("verb", ["update", "delete"])
def test_history_cannot_be_rewritten_by_any_statement(world: World, verb: str) -> None:
    world.submit()
    rows = Transition.objects.all()
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        rows.update(actor="somebody") if verb == "update" else rows.delete()
    sql = {
        "update": "UPDATE orders_transition SET reason = 'other'",
        "delete": "DELETE FROM orders_transition",
    }[verb]
    with (
        pytest.raises(DatabaseError, match="append-only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(sql)
    assert Transition.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_history_cannot_be_truncated(world: World) -> None:
    if connection.vendor != "postgresql":
        return  # SQLite knows no TRUNCATE: it deletes, which is refused above
    world.submit()
    with (
        pytest.raises(DatabaseError, match="append-only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute("TRUNCATE orders_transition CASCADE")
    assert Transition.objects.exists()


def row(intent: Intent, **changes: object) -> Transition:
    values: dict[str, object] = {
        "at": datetime.now(UTC),
        "subject": "intent",
        "account_id": intent.account_id,
        "market_id": intent.market_id,
        "intent": intent,
        "seq": 2,
        "event": "claimed",
        "from_state": "INTENT",
        "to_state": "IN_FLIGHT",
        "actor": "x",
        "act_id": "00000000-0000-0000-0000-000000000001",
    }
    return Transition(**{**values, **changes})


@pytest.mark.parametrize(
    "wrong",
    [
        {"seq": 1},  # numbered already
        {"seq": None},
        {"to_state": "FILLED"},  # not a listed move
        {"from_state": "NOWHERE"},
        {"event": "fill", "to_state": "LIVE"},  # a note that moves
        {"market_id": None},
    ],
)
def test_the_database_itself_refuses_a_line_that_cannot_be(
    world: World, wrong: dict[str, object]
) -> None:
    intent = world.submit()
    with pytest.raises(IntegrityError), transaction.atomic():
        row(intent, **wrong).save()
    row(intent).save()


@pytest.mark.parametrize(
    "wrong",
    [
        {"state": "SOMEWHERE"},
        {"state": "IN_FLIGHT"},  # without a claim
        {"side": "hold"},
        {"type": "dream"},
    ],
)
def test_the_database_itself_refuses_an_intent_that_cannot_be(
    world: World, wrong: dict[str, str]
) -> None:
    intent = world.submit()
    with pytest.raises(IntegrityError), transaction.atomic():
        Intent.objects.filter(pk=intent.pk).update(**wrong)


@pytest.mark.parametrize("column", ["client_order_id", "decision_key"])
def test_the_database_itself_refuses_a_second_row_for_one_decision(
    world: World, column: str
) -> None:
    one, two = world.submit(), world.submit()
    with pytest.raises(IntegrityError), transaction.atomic():
        Intent.objects.filter(pk=two.pk).update(**{column: getattr(one, column)})


def test_the_database_itself_refuses_a_fill_twice(world: World) -> None:
    intent = world.in_flight()
    world.step(intent, Event.ACCEPTED)
    world.record(Change(intent.pk, Note.FILL, fills=(trade("t1"),)))
    fill = Fill.objects.get()
    fill.pk = None
    with pytest.raises(IntegrityError), transaction.atomic():
        fill.save(force_insert=True)


def test_filled_means_booked_also_to_the_database(world: World) -> None:
    intent = world.in_flight()
    world.step(intent, Event.ACCEPTED)
    with pytest.raises(IntegrityError), transaction.atomic():
        Intent.objects.filter(pk=intent.pk).update(state="FILLED", venue_filled=Decimal(1))


def test_money_keeps_every_digit(world: World) -> None:
    exact = "12345678901234567.123456789012345678"
    intent = world.submit(quantity=exact)
    intent.refresh_from_db()
    assert intent.quantity == Decimal(exact)
    assert str(intent.quantity) == exact
