"""The command line's options, shared by `python -m venues.simulator` and `manage.py simulate`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from venues.profiles import UsedId
from venues.simulator.admin import USED_ID_RULES
from venues.simulator.main import DEFAULT_SECRET, Options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare every option."""
    add = parser.add_argument
    add("--host", default="127.0.0.1", help="the address to listen on (default: %(default)s)")
    add("--port", type=int, default=9100, help="0 picks a free one (default: %(default)s)")
    add(
        "--used-id",
        choices=USED_ID_RULES,
        default=UsedId.UNIQUE_WHILE_OPEN.value,
        help="what becomes of a client order ID that was used before (default: %(default)s)",
    )
    add("--no-expiry", action="store_true", help="accept requests however old they are")
    add("--seed", type=int, default=0, help="of the prices and of the coin (default: %(default)s)")
    add("--still", action="store_true", help="prices move only by POST /_price")
    add("--tick-ms", type=int, default=200, help="a price's step (default: %(default)s)")
    add("--secret", default=DEFAULT_SECRET, help="what requests are signed with")
    add("--key", action="append", default=[], help="a known API key; none given: any will do")


def options_from(arguments: Mapping[str, Any]) -> Options:
    """The options that were given. Raises ValueError, naming the one that is wrong."""
    if not 0 <= arguments["port"] <= 65_535:
        raise ValueError(f"--port must be from 0 to 65535, not {arguments['port']}")
    if arguments["tick_ms"] < 1:
        raise ValueError(f"--tick-ms must be at least 1, not {arguments['tick_ms']}")
    return Options(
        host=arguments["host"],
        port=arguments["port"],
        used_id=UsedId(arguments["used_id"]),
        honour_expiry=not arguments["no_expiry"],
        seed=arguments["seed"],
        still=arguments["still"],
        tick_ms=arguments["tick_ms"],
        keys=frozenset(arguments["key"]),
        secret=arguments["secret"],
    )
