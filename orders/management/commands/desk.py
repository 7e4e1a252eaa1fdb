"""manage.py desk: the whole desk, in the foreground."""

from __future__ import annotations

import os
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from orderdesk import launch


class Command(BaseCommand):
    help = "Start web, lanes and workers; stop all of them on SIGTERM or Ctrl-C."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--demo",
            action="store_true",
            help="with a simulated venue, a demo strategy and a journal of its own",
        )

    def handle(self, *_args: Any, demo: bool, **_options: Any) -> None:
        if demo and not settings.ORDERDESK_DEMO:
            # Settings and applications depend on it, so everything begins anew.
            os.environ["ORDERDESK_DEMO"] = "1"
            os.execv(sys.executable, [sys.executable, *sys.argv])  # noqa: S606
        try:
            launch.desk(self._say)
        except launch.LaunchError as error:
            raise CommandError(str(error)) from error

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()  # at once, also into a pipe
