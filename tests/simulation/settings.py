"""The tests' settings with a journal in memory and a short patience."""

from __future__ import annotations

from tests.settings import *  # noqa: F403

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": ":memory:",
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "cached_statements": 1000,
            "init_command": "PRAGMA foreign_keys=ON; PRAGMA synchronous=OFF;",
        },
    }
}
ORDERDESK_DOUBT_S = 3
