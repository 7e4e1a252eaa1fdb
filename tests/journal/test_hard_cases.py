"""Cases in which a journal that looks right would place twice, lose a fill or stay silent."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.db import connection

from orders import intake, journal
from orders.journal import Change, Halt, Orphan
from orders.machine import Event, Note, State
from orders.models import Account, Alert, Intent, Lease, Market, Transition
from tests.journal.conftest import ACTOR, World, ago, make_world, trade
from tests.support.lane import recovered
from venues.gateway import OrderReport, OrderStatus

pytestmark = [pytest.mark.database, pytest.mark.django_db]


def restore(world: World) -> World:
    """The journal comes from a backup, and the next lane has looked its markets over."""
    at = datetime.now(UTC)
    journal.mark_restored(world.account.pk, actor="command:restored", at=at, reason="disk")
    Account.objects.update(restored_at=at + timedelta(milliseconds=1))
    taken = journal.take(world.account.pk, owner="next", at=at)
    assert taken is not None
    recovered(taken[0])
    account = Account.objects.get(pk=world.account.pk)
    return World(account, taken[0], world.btc, world.eth)


def later(seconds: float = 10) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


def clear(world: World, intent: Intent) -> None:
    journal.clear(intent.pk, hold=world.hold, actor=ACTOR, at=later(1), evidence={})


@pytest.mark.parametrize("attempts", [0, 1])
def test_whatever_a_backup_says_an_old_decision_is_looked_for_first(
    world: World, attempts: int
) -> None:
    intent = world.submit(valid_for_s=600)
    if attempts:
        world.claim()
        world.step(intent, Event.NOT_PLACED)
    next_world = restore(world)
    assert next_world.claim(at=later()) == []
    assert [row.pk for row in journal.to_look_for(next_world.account)] == [intent.pk]
    clear(next_world, intent)
    assert len(next_world.claim(at=later())) == 1


def test_a_proof_from_before_the_restore_does_not_count(world: World) -> None:
    intent = world.submit(valid_for_s=600)
    first = restore(world)
    journal.clear(intent.pk, hold=first.hold, actor=ACTOR, at=datetime.now(UTC), evidence={})
    second = restore(first)
    assert second.claim(at=later()) == []


def test_nothing_is_sent_until_what_the_lost_journal_sent_has_expired(world: World) -> None:
    next_world = restore(world)
    intent = next_world.submit(decided_at=datetime.now(UTC) + timedelta(seconds=1))
    assert next_world.claim() == []
    assert [item.pk for item in next_world.claim(at=later(4))] == [intent.pk]


def test_epochs_jump_above_any_that_were_given_out(world: World) -> None:
    assert restore(world).hold.epoch > world.hold.epoch + 1000


def test_nothing_is_sent_in_a_market_that_recovery_has_not_seen(world: World) -> None:
    unseen, seen = world.submit(), world.submit("ETH/USDT")
    Market.objects.filter(pk=world.btc.pk).update(looked_over_at=None)
    assert [item.pk for item in world.claim()] == [seen.pk]
    journal.look_over(world.hold, world.btc.pk, at=datetime.now(UTC))
    assert [item.pk for item in world.claim()] == [unseen.pk]


def orphan(world: World, name: str, quantity: str = "1") -> Intent:
    report = OrderReport(
        "77", name, "BTC/USDT", "buy", OrderStatus.OPEN, Decimal(quantity), Decimal(0)
    )
    found = Orphan(world.btc.pk, report, {"call": "look"})
    return journal.adopt(found, hold=world.hold, actor=ACTOR, at=datetime.now(UTC))


def named(world: World, key: str) -> str:
    """The client order ID that a decision will have."""
    intent = world.submit(key=key)
    name = intent.client_order_id
    # As if this row had never been: the backup is older. No real name has capitals.
    Intent.objects.filter(pk=intent.pk).update(client_order_id=name.upper(), decision_key="0" * 64)
    return name


def test_a_repeated_decision_finds_its_orphan(world: World) -> None:
    name = named(world, "lost")
    adopted = orphan(world, name)
    assert (adopted.state, adopted.orphan) == (State.ACKED, True)
    assert Market.objects.get(pk=world.btc.pk).state == "HALTED"
    again = world.submit(key="lost")
    assert (again.pk, again.client_order_id, again.strategy) == (adopted.pk, name, "s1")


def test_an_orphan_of_another_quantity_is_nobodys(world: World) -> None:
    orphan(world, named(world, "lost"), quantity="2")
    with pytest.raises(intake.DecisionError) as caught:
        world.submit(key="lost")
    assert caught.value.code == "id_collision"


def test_text_that_no_database_takes_is_written_all_the_same(world: World) -> None:
    intent = world.in_flight()
    evil = "a\0b\ud800c"
    world.step(intent, Event.REJECTED, reason=evil, evidence={"body": evil, evil: [evil]})
    line = Transition.objects.get(intent=intent, event="rejected")
    assert "\0" not in line.reason
    assert line.reason.startswith("a")
    assert line.evidence["body"] == line.reason


def test_both_sides_of_a_trade_with_oneself_are_booked(world: World) -> None:
    buy, sell = world.in_flight(), world.in_flight(side="sell")
    for intent, side, order in ((buy, "buy", "o1"), (sell, "sell", "o2")):
        world.step(intent, Event.ACCEPTED)
        fill = replace(trade("t1", side=side), venue_order_id=order)
        world.record(Change(intent.pk, Note.FILL, fills=(fill,)))
    buy.refresh_from_db()
    sell.refresh_from_db()
    assert buy.filled == sell.filled == Decimal(1)
    assert Market.objects.get(pk=world.btc.pk).position == 0


def test_a_second_cause_in_a_halted_market_is_told_once(world: World) -> None:
    intent = world.in_flight()
    now = datetime.now(UTC)
    journal.halt(Halt(world.btc.pk, "maintenance"), actor="user:ann", at=now)
    for _ in range(3):
        again = Halt(world.btc.pk, "two orders", kind="two orders", intent_id=intent.pk)
        journal.halt(again, actor=ACTOR, at=now)
        journal.halt(Halt(world.btc.pk, "me too"), actor="user:bob", at=now)
    assert sorted(Alert.objects.values_list("message", "times")) == [
        ("BTC/USDT on main is halted: maintenance", 1),
        ("BTC/USDT on main is halted: two orders", 1),
    ]
    world.step(intent, Event.REJECTED)
    journal.resume(world.btc.pk, actor="user:ann", reason="checked", at=now)
    assert not Alert.objects.exclude(state="RESOLVED").exists()


def test_a_crowd_that_waits_in_one_market_does_not_hide_the_others(world: World) -> None:
    world.step(world.in_flight(), Event.NO_ANSWER)
    at = datetime.now(UTC)
    crowd = [
        intake.Decision("main", "s", "BTC/USDT", "buy", "market", "1", at, key=f"c{number}")
        for number in range(150)
    ]
    intake.submit_many(crowd, actor="x")
    other = world.submit("ETH/USDT")
    assert [item.pk for item in world.claim(limit=5)] == [other.pk]


def test_an_order_with_no_time_left_is_out_of_date_rather_than_refused(world: World) -> None:
    intent = world.submit(valid_for_s=5)
    almost = intent.valid_until - timedelta(milliseconds=20)
    assert world.claim(at=almost) == []
    intent.refresh_from_db()
    assert intent.state == State.DENIED


def test_evidence_of_a_former_owner_can_rule_absence_out(world: World) -> None:
    intent = world.in_flight()
    world.step(intent, Event.NO_ANSWER, Event.RECONCILE_STARTED)
    kept = Change(intent.pk, Note.EVIDENCE, evidence={"body": "ok"}, columns={"known": True})
    journal.record([kept], actor="lane:former", at=datetime.now(UTC))
    with pytest.raises(journal.BrokenRuleError):
        world.step(intent, Event.ABSENT)


@pytest.fixture
def open_world(transactional_db: None) -> World:
    return make_world()


def test_two_lists_over_the_same_markets_never_deadlock(open_world: World) -> None:
    errors: list[Exception] = []
    at = datetime.now(UTC)

    def submit(worker: int) -> None:
        try:
            for turn in range(3):
                symbols = ("BTC/USDT", "ETH/USDT")[:: 1 if worker % 2 else -1] * 10
                decisions = [
                    intake.Decision(
                        "main", f"s{worker}", name, "buy", "market", "1", at, key=f"{turn}-{n}"
                    )
                    for n, name in enumerate(symbols)
                ]
                intake.submit_many(decisions, actor="x")
        except Exception as error:
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=submit, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert Intent.objects.count() == 240


def test_a_lease_released_long_ago_makes_every_market_be_looked_over(world: World) -> None:
    journal.release(world.hold, clean=True, at=datetime.now(UTC))
    Lease.objects.update(deadline=ago(60))
    journal.take(world.account.pk, owner="next", at=datetime.now(UTC))
    assert not Market.objects.filter(looked_over_at__isnull=False).exists()
