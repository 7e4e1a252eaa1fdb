"""One sender: the lease, its epoch, and the claim that only its holder can make."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from orders import journal, operate
from orders.journal import LeaseLostError
from orders.machine import Event, State
from orders.models import LaneProcess, Lease, Transition
from tests.journal.conftest import ACTOR, World, ago
from tests.support.lane import recovered

pytestmark = [pytest.mark.database, pytest.mark.django_db]


def expire(world: World) -> None:
    Lease.objects.filter(account=world.account).update(deadline=ago(1))


def take(world: World, owner: str) -> journal.Hold:
    taken = journal.take(world.account.pk, owner=owner, at=datetime.now(UTC))
    assert taken is not None
    return taken[0]


def test_a_held_lease_cannot_be_taken(world: World) -> None:
    assert journal.take(world.account.pk, owner="other", at=datetime.now(UTC)) is None


def test_an_expired_lease_is_taken_with_a_higher_epoch_and_recovery_due(world: World) -> None:
    expire(world)
    taken = journal.take(world.account.pk, owner="other", at=datetime.now(UTC))
    assert taken is not None
    assert (taken[0].epoch, taken[1]) == (world.hold.epoch + 1, True)


def test_a_former_owner_can_neither_claim_nor_record(world: World) -> None:
    intent = world.in_flight()
    world.submit("ETH/USDT")
    expire(world)
    take(world, "other")
    with pytest.raises(LeaseLostError):
        world.claim()
    with pytest.raises(LeaseLostError):
        world.step(intent, Event.REJECTED)
    intent.refresh_from_db()
    assert intent.state == State.IN_FLIGHT


def test_an_owner_past_its_deadline_can_neither_claim_nor_record(world: World) -> None:
    intent = world.in_flight()
    expire(world)
    with pytest.raises(LeaseLostError):
        world.claim()
    with pytest.raises(LeaseLostError):
        world.step(intent, Event.REJECTED)


def test_renewing_keeps_a_lease_and_shows_the_process(world: World) -> None:
    process = LaneProcess(owner="test", host="h", pid=1, started_at=datetime.now(UTC))
    Lease.objects.update(deadline=datetime.now(UTC) + timedelta(seconds=0.5))
    assert journal.renew([world.hold], process=process) == [world.hold]
    lease = Lease.objects.get()
    assert lease.deadline is not None
    assert lease.deadline > datetime.now(UTC) + timedelta(seconds=2)
    assert LaneProcess.objects.get().pid == 1


def test_a_lost_lease_cannot_be_renewed_back(world: World) -> None:
    process = LaneProcess(owner="test", host="h", pid=1, started_at=datetime.now(UTC))
    expire(world)
    assert journal.renew([world.hold], process=process) == []
    take(world, "other")
    assert journal.renew([world.hold], process=process) == []


def test_a_clean_release_hands_over_without_a_new_recovery(world: World) -> None:
    journal.release(world.hold, clean=True, at=datetime.now(UTC))
    taken = journal.take(world.account.pk, owner="other", at=datetime.now(UTC))
    assert taken is not None
    assert not taken[1]


def test_a_release_of_long_ago_is_not_clean_since_the_journal_may_be_a_backup(world: World) -> None:
    journal.release(world.hold, clean=True, at=datetime.now(UTC))
    Lease.objects.update(deadline=ago(6))
    taken = journal.take(world.account.pk, owner="other", at=datetime.now(UTC))
    assert taken is not None
    assert taken[1]


def test_an_unclean_release_makes_the_next_lane_recover(world: World) -> None:
    journal.release(world.hold, clean=False, at=datetime.now(UTC))
    taken = journal.take(world.account.pk, owner="other", at=datetime.now(UTC))
    assert taken is not None
    assert taken[1]


def test_nothing_is_claimed_before_recovery_is_over(world: World) -> None:
    world.submit()
    expire(world)
    hold = take(world, "other")
    assert not journal.claim(hold, world.window(), actor=ACTOR)
    stale = world.submit(valid_for_s=1)
    assert not journal.claim(
        hold, world.window(at=datetime.now(UTC) + timedelta(seconds=2)), actor=ACTOR
    )
    stale.refresh_from_db()
    assert stale.state == State.DENIED
    recovered(hold)
    assert journal.claim(hold, world.window(), actor=ACTOR)


def test_a_late_release_by_a_former_owner_changes_nothing(world: World) -> None:
    expire(world)
    hold = take(world, "other")
    journal.release(world.hold, clean=True, at=datetime.now(UTC))
    assert Lease.objects.get().owner == hold.owner


def test_several_orders_of_one_market_may_be_in_flight(world: World) -> None:
    world.submit()
    world.submit()
    assert len(world.claim()) == 2


@pytest.mark.parametrize("doubt", [[Event.NO_ANSWER], [Event.NO_ANSWER, Event.RECONCILE_STARTED]])
def test_doubt_blocks_its_market_and_no_other(world: World, doubt: list[Event]) -> None:
    intent = world.in_flight()
    world.step(intent, *doubt)
    blocked, free = world.submit(), world.submit("ETH/USDT")
    assert [item.pk for item in world.claim()] == [free.pk]
    assert not journal.waiting(world.account.pk, datetime.now(UTC))
    blocked.refresh_from_db()
    assert blocked.state == State.INTENT


def test_in_flight_past_its_time_out_is_doubt(world: World) -> None:
    world.in_flight()
    world.submit()
    assert world.claim(at=datetime.now(UTC) + timedelta(seconds=6)) == []


def test_a_stale_order_is_never_sent(world: World) -> None:
    intent = world.submit(valid_for_s=1)
    assert world.claim(at=datetime.now(UTC) + timedelta(seconds=2)) == []
    intent.refresh_from_db()
    assert intent.state == State.DENIED
    assert "valid until" in intent.reason


def test_a_stale_order_ends_even_where_its_market_is_in_doubt(world: World) -> None:
    world.step(world.in_flight(), Event.NO_ANSWER)
    intent = world.submit(valid_for_s=1)
    later = datetime.now(UTC) + timedelta(seconds=2)
    assert journal.waiting(world.account.pk, later)
    world.claim(at=later)
    intent.refresh_from_db()
    assert intent.state == State.DENIED


def test_a_cancel_before_the_send_withdraws_at_once(world: World) -> None:
    intent = operate.cancel(world.submit().pk, actor="user:ann")
    assert intent.state == State.CANCELED
    assert world.claim() == []


def test_a_cancel_is_remembered_while_the_order_is_out(world: World) -> None:
    intent = world.in_flight()
    intent = operate.cancel(intent.pk, actor="user:ann")
    assert (intent.state, intent.cancel_requested_by) == (State.IN_FLIGHT, "user:ann")
    before = Transition.objects.count()
    operate.cancel(intent.pk, actor="user:bob")
    assert Transition.objects.count() == before
    world.step(intent, Event.NO_ANSWER, Event.RECONCILE_STARTED, Event.ABSENT)
    assert world.claim() == []
    intent.refresh_from_db()
    assert intent.state == State.CANCELED


def test_a_claim_takes_no_more_than_its_limit_and_the_oldest_first(world: World) -> None:
    intents = [world.submit() for _ in range(3)]
    assert [item.pk for item in world.claim(limit=2)] == [item.pk for item in intents[:2]]
    assert [item.pk for item in world.claim(limit=2)] == [intents[2].pk]


def test_a_claim_waits_for_its_back_off(world: World) -> None:
    intent = world.in_flight()
    later = datetime.now(UTC) + timedelta(seconds=5)
    world.step(intent, Event.NOT_PLACED, columns={"not_before": later})
    assert world.claim() == []
    assert not journal.waiting(world.account.pk, datetime.now(UTC))
    assert len(world.claim(at=later)) == 1


def test_the_expiry_is_counted_from_the_claim_on_the_venues_clock(world: World) -> None:
    world.submit()
    window = world.window(offset_ms=1500.0)
    (intent,) = journal.claim(world.hold, window, actor=ACTOR).intents
    claimed_ms = window.at.timestamp() * 1000
    assert intent.last_expiry_ms == int(claimed_ms + 1500 + 3000)


def test_the_expiry_is_never_later_than_the_decision_is_valid(world: World) -> None:
    world.submit(valid_for_s=2)
    window = world.window()
    (intent,) = journal.claim(world.hold, window, actor=ACTOR).intents
    assert intent.last_expiry_ms == int(intent.valid_until.timestamp() * 1000)
    assert journal.attempt_expiry_ms(intent, window) == intent.last_expiry_ms


def test_one_attempt_without_an_expiry_leaves_none_for_ever(world: World) -> None:
    world.submit()
    (intent,) = world.claim(expiry_ms=None)
    assert intent.last_expiry_ms is None
    world.step(intent, Event.NOT_PLACED)
    (intent,) = world.claim()
    assert intent.last_expiry_ms is None
    assert intent.filled == Decimal(0)
