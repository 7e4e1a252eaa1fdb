"""Entry points for django-q2. A task carries no instruction: the journal is the instruction."""

from __future__ import annotations

import sys

import uvloop
from django.conf import settings
from django.utils import timezone
from django_q.models import OrmQ

from orders.clock import SYSTEM
from orders.models import Heartbeat

LANES = "lanes"  # the queue, as in Q_CLUSTER
WORK = "work"  # the other queue, and its heartbeat
SWITCH_INTERVAL_S = 0.0005  # the loop and the journal's thread take turns quickly


def lane() -> str:
    """Drive accounts until the slice is over or a stop is asked for. Copies stand by."""
    from orderdesk import guard
    from orderdesk.account_file import load
    from orders import accounts
    from orders.lane.runner import Runner
    from orders.lane.stop import ProcessStop
    from venues.ccxt_gateway import gateway_for

    _acknowledge_lanes()
    if guard.is_stopping():  # a copy that waited in the cluster must not hold up the stop
        return "told to stop"
    venues = load(settings.ORDERDESK_CONFIG)
    accounts.sync(venues)
    sys.setswitchinterval(SWITCH_INTERVAL_S)

    async def run() -> str:
        runner = Runner(
            venues, gateway_for, SYSTEM, ProcessStop(), slice_s=settings.ORDERDESK_SLICE_S
        )
        return await runner.run()

    return uvloop.run(run())


def beat() -> None:
    """Show that the work queue runs; where this stands still the supervisor restarts it."""
    Heartbeat.objects.update_or_create(name=WORK, defaults={"at": SYSTEM.now()})


def _acknowledge_lanes() -> None:
    """Take delivered lane tasks off the queue now: redelivery while they run helps nobody.

    A lane that dies is missed by the supervisor, which enqueues another.
    """
    OrmQ.objects.filter(key=LANES, lock__gt=timezone.now()).delete()
