"""Makes, lists and revokes the tokens with which programs use the API."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from orders import tokens
from orders.management.journal import require_tables, where
from orders.models import Account, ApiToken
from orders.roles import Role


class Command(BaseCommand):
    help = "Make, list and revoke the tokens with which programs use the API."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        create = verbs.add_parser("create", help="make a token and print it, once")
        create.add_argument("name", help="who will use it; the journal shows it")
        create.add_argument("--role", required=True, choices=[role.value for role in Role])
        create.add_argument(
            "--account", action="append", default=[], help="only this account; may be repeated"
        )
        create.add_argument(
            "--strategy", action="append", default=[], help="only this strategy; may be repeated"
        )
        verbs.add_parser("list", help="show all tokens, without their secrets")
        revoke = verbs.add_parser("revoke", help="end a token at once")
        revoke.add_argument("name")

    def handle(self, *args: Any, verb: str, **options: Any) -> None:
        require_tables()
        try:
            match verb:
                case "create":
                    self._create(options)
                case "list":
                    self._list()
                case "revoke":
                    tokens.revoke(options["name"])
        except tokens.TokenError as error:
            raise CommandError(str(error)) from None

    def _create(self, options: dict[str, Any]) -> None:
        accounts = options["account"]
        known = set(Account.objects.filter(name__in=accounts).values_list("name", flat=True))
        for name in accounts:
            if name not in known:
                self.stderr.write(f"note: there is no account {name!r} yet")
        token = tokens.create(
            options["name"],
            Role(options["role"]),
            accounts=accounts,
            strategies=options["strategy"],
        )
        self.stdout.write(token)
        self.stderr.write(f"note: kept in the journal {where()}")

    def _list(self) -> None:
        if not ApiToken.objects.exists():
            self.stderr.write(f"note: there are no tokens in the journal {where()}")
        line = "{:<24} {:<14} {:<24} {:<24} {:<17} {}"
        self.stdout.write(
            line.format("name", "role", "accounts", "strategies", "created (UTC)", "revoked (UTC)")
        )
        for row in ApiToken.objects.order_by("name"):
            self.stdout.write(
                line.format(
                    row.name,
                    row.role,
                    ",".join(row.accounts) or "all",
                    ",".join(row.strategies) or "all",
                    f"{row.created_at:%Y-%m-%d %H:%M}",
                    f"{row.revoked_at:%Y-%m-%d %H:%M}" if row.revoked_at else "-",
                )
            )
