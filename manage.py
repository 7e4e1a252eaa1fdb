#!/usr/bin/env python
"""Runs the desk's commands."""

import os
import sys

NEED_TABLES = ("createsuperuser", "changepassword")  # Django's own; ours look for themselves


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "orderdesk.settings")
    from django.conf import settings
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        settings.INSTALLED_APPS  # noqa: B018 - reads the environment
    except ImproperlyConfigured as error:
        sys.exit(f"orderdesk cannot start: {error}")
    if sys.argv[1:2] and sys.argv[1] in NEED_TABLES:
        _require_tables()
    execute_from_command_line(sys.argv)


def _require_tables() -> None:
    import django
    from django.core.management import CommandError

    django.setup()
    from orders.management.journal import require_tables

    try:
        require_tables()
    except CommandError as error:
        sys.exit(f"CommandError: {error}")


if __name__ == "__main__":
    main()
