"""manage.py desk_cluster: the workers of one queue. `desk` starts it."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django_q.cluster import Cluster
from django_q.signals import post_spawn

from orderdesk import guard

# Workers are forked, so what is imported here costs a lane that takes over nothing.
PRELOADED = {
    "lanes": ("orderdesk.account_file", "orders.lane.runner", "venues.ccxt_gateway"),
    "work": ("orders.tasks",),
}


class Command(BaseCommand):
    help = "Run the workers of the queue that Q_CLUSTER_NAME names, until SIGTERM."

    def handle(self, *_args: Any, **_options: Any) -> None:
        name = os.environ.get("Q_CLUSTER_NAME", "")
        queues = settings.Q_CLUSTER["ALT_CLUSTERS"]
        if name not in queues:
            raise CommandError(f"set Q_CLUSTER_NAME to one of {', '.join(queues)}, not {name!r}")
        for module in PRELOADED[name]:
            import_module(module)
        guard.watch()
        post_spawn.connect(_watch_in_worker, sender="django_q", weak=False)
        Cluster().start()


def _watch_in_worker(**_signal: Any) -> None:
    """Threads do not survive a fork, and a worker may outlive the main process."""
    guard.watch()
