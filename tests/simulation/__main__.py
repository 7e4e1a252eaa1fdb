"""`python -m tests.simulation --seeds N`: search for a seed that breaks the promise."""

from __future__ import annotations

import os
import sys


def main() -> int:
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.simulation.settings"
    os.environ.setdefault("ORDERDESK_SECRET_KEY", "of the simulation alone")
    import django

    django.setup()
    from tests.simulation import search

    return search.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
