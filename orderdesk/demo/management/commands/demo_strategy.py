"""manage.py demo_strategy: the demo's own strategy, started by `desk --demo`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from orderdesk.demo.strategy import Strategy


class Command(BaseCommand):
    help = "Submit small decisions on the simulated venue until SIGTERM."

    def handle(self, *_args: Any, **_options: Any) -> None:
        Strategy().run()
