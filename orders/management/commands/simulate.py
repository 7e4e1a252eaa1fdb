"""manage.py simulate: a simulated venue that unmodified ccxt and other programs can talk to."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from venues.simulator.cli import add_arguments, options_from
from venues.simulator.main import serve


class Command(BaseCommand):
    help = "Run the simulated venue until SIGTERM. docs/simulator.md tells what it can do."
    requires_system_checks = ()  # it needs neither models nor a database

    def add_arguments(self, parser: CommandParser) -> None:
        add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            serve(options_from(options))
        except (OSError, ValueError) as error:
            raise CommandError(f"the simulator cannot start: {error}") from error
