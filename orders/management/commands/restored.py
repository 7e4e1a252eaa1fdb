"""Tells the desk that its journal came from a backup."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from orders import operate
from orders.management.journal import require_tables
from orders.models import Account


class Command(BaseCommand):
    help = (
        "Say that the journal was restored from a backup: nothing is sent for the accounts until "
        "everything the lost journal may have sent has expired, and what was decided before is "
        "looked for before it is sent."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("account", nargs="*", help="names; all accounts without any")
        parser.add_argument("--reason", required=True, help="kept in the journal")

    def handle(self, *args: Any, **options: Any) -> None:
        require_tables()
        names: list[str] = options["account"]
        accounts = Account.objects.filter(active=True).order_by("name")
        known = list(accounts.values_list("name", flat=True))
        for name in names:
            if name not in known:
                raise CommandError(f"unknown account {name!r}; known: {', '.join(known)}")
        for account in accounts.filter(name__in=names or known):
            operate.restored(account.pk, actor="command:restored", reason=options["reason"])
            self.stdout.write(f"{account.name}: starting over with a recovery")
