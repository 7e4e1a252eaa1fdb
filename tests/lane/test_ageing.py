"""What lasts too long is told, once, and taken back when it is over. No venue is needed for it."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

import pytest
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext

from orders.clock import SYSTEM
from orders.journal import Change
from orders.lane import ageing
from orders.lane.context import Lane, ThreadDatabase
from orders.machine import Event, Note, State
from orders.models import Alert, Intent, Lease, Market
from tests.journal.conftest import World, ago, make_world, trade
from venues.ccxt_gateway import gateway_for
from venues.gateway import SecretText, VenueSettings

pytestmark = [pytest.mark.database, pytest.mark.django_db]

CAP = timedelta(seconds=settings.ORDERDESK_DOUBT_S)
MOMENT = timedelta(seconds=1)


@pytest.fixture
def world(db: None) -> World:
    return make_world()


@pytest.fixture
def lane(world: World) -> Lane:
    """A lane that has not asked its venue anything."""
    venue = VenueSettings("main", "binance", ("BTC/USDT",), SecretText("k"), SecretText("s"))
    return Lane(
        account=world.account,
        hold=world.hold,
        gateway=gateway_for(venue),
        clock=SYSTEM,
        database=ThreadDatabase("unused"),
        deadline=lambda: float("inf"),
    )


def doubtful(world: World, since: datetime) -> Intent:
    intent = world.step(world.in_flight(), Event.NO_ANSWER, reason="it was cut off")
    world.step(intent, Event.RECONCILE_STARTED)
    Intent.objects.filter(pk=intent.pk).update(doubt_since=since)
    return intent


def alerts() -> list[tuple[str, str]]:
    return list(Alert.objects.exclude(state="RESOLVED").values_list("kind", "severity"))


def state(world: World) -> str:
    return Market.objects.get(pk=world.btc.pk).state


def test_doubt_within_the_cap_is_left_to_the_lane(world: World, lane: Lane) -> None:
    doubtful(world, SYSTEM.now() - CAP + MOMENT)
    ageing.check(lane, SYSTEM.now(), None)
    assert (state(world), alerts()) == ("OPEN", [])


def test_doubt_past_the_cap_halts_once_and_says_what_was_heard_last(
    world: World, lane: Lane
) -> None:
    intent = doubtful(world, SYSTEM.now() - CAP - MOMENT)
    for _ in range(3):
        ageing.check(lane, SYSTEM.now(), None)
    assert state(world) == "HALTED"
    alert = Alert.objects.get()
    assert (alert.kind, alert.times, alert.intent_id) == ("market_halted", 1, intent.pk)
    assert "it was cut off" in alert.message


def test_what_was_told_is_not_written_again_every_second(world: World, lane: Lane) -> None:
    doubtful(world, SYSTEM.now() - CAP - MOMENT)
    ageing.check(lane, SYSTEM.now(), None)
    with CaptureQueriesContext(connection) as second:
        ageing.check(lane, SYSTEM.now(), None)
    assert not [query for query in second.captured_queries if "SAVEPOINT" in query["sql"]]


def test_a_request_without_an_answer_past_the_cap_halts_too(world: World, lane: Lane) -> None:
    intent = world.in_flight()
    Intent.objects.filter(pk=intent.pk).update(claimed_at=SYSTEM.now() - CAP - MOMENT)
    ageing.check(lane, SYSTEM.now(), None)
    assert state(world) == "HALTED"


def test_a_limit_spends_no_cap_but_people_are_told(world: World, lane: Lane) -> None:
    intent = doubtful(world, SYSTEM.now() - CAP - MOMENT)
    lane.limited_until = SYSTEM.now() + timedelta(seconds=60)
    for _ in range(2):
        ageing.check(lane, SYSTEM.now(), lane.limited_until)
    assert (state(world), alerts()) == ("OPEN", [("unresolved_during_limit", "warning")])
    world.step(intent, Event.ABSENT)
    ageing.check(lane, SYSTEM.now(), lane.limited_until)
    assert alerts() == []


def test_after_a_limit_the_cap_counts_from_its_end(world: World, lane: Lane) -> None:
    doubtful(world, SYSTEM.now() - 3 * CAP)
    lane.limited_until = SYSTEM.now() - CAP + MOMENT
    ageing.check(lane, SYSTEM.now(), None)
    assert state(world) == "OPEN"
    lane.limited_until = SYSTEM.now() - CAP - MOMENT
    ageing.check(lane, SYSTEM.now(), None)
    assert state(world) == "HALTED"


def test_a_doubt_that_began_after_an_old_limit_halts_like_any_other(
    world: World, lane: Lane
) -> None:
    doubtful(world, SYSTEM.now() - CAP - MOMENT)
    lane.limited_until = SYSTEM.now() - 2 * CAP
    ageing.check(lane, SYSTEM.now(), None)
    assert state(world) == "HALTED"


def test_executions_that_the_venue_reports_and_does_not_show_are_told(
    world: World, lane: Lane
) -> None:
    intent = world.in_flight()
    world.step(intent, Event.ACCEPTED, columns={"venue_filled": Decimal(1)})
    Intent.objects.filter(pk=intent.pk).update(updated_at=SYSTEM.now() - CAP - MOMENT)
    ageing.check(lane, SYSTEM.now(), None)
    assert alerts() == [("fills_missing", "critical")]
    world.record(Change(intent.pk, Note.FILL, fills=(trade("t1"),)))
    ageing.check(lane, SYSTEM.now(), None)
    assert alerts() == []


def test_a_market_that_recovery_cannot_see_is_told(world: World, lane: Lane) -> None:
    Market.objects.filter(pk=world.btc.pk).update(looked_over_at=None)
    ageing.check(lane, SYSTEM.now(), None)
    assert alerts() == []
    Lease.objects.update(taken_at=SYSTEM.now() - CAP - MOMENT)
    ageing.check(lane, SYSTEM.now(), None)
    assert alerts() == [("market_unseen", "critical")]


def test_what_goes_out_of_date_ends_without_the_venue(world: World, lane: Lane) -> None:
    intent = world.submit()
    Intent.objects.filter(pk=intent.pk).update(valid_until=ago(1))
    ageing.check(lane, SYSTEM.now(), None)
    intent.refresh_from_db()
    assert intent.state == State.DENIED
