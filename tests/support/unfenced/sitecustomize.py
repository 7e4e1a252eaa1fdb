"""Takes fences out of a desk's processes, to show what each of them is for.

With this folder on PYTHONPATH every Python process imports it at its start. What
ORDERDESK_TEST_WITHOUT names is then missing: "deadline", the lane's look at its own lease before a
send; "expiry", the end of a request's life, counted from its claim.
"""

from __future__ import annotations

import math
import os
import sys
import time
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

GATEWAY = "venues.ccxt_gateway.gateway"
WITHOUT = frozenset(os.environ.get("ORDERDESK_TEST_WITHOUT", "").split(","))


class Unfencing(Loader):
    """Loads the gateway as always, then changes how it begins a send."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        gateway: Any = module.CcxtGateway
        place = gateway.place

        def unfenced(self: Any, spec: Any, permit: Any) -> Any:
            if "deadline" in WITHOUT:
                permit.send_before_monotonic_s = math.inf
            if "expiry" in WITHOUT:
                life_ms = permit.expires_venue_ms - permit.claimed_venue_ms
                permit.claimed_venue_ms = int(time.time() * 1000)
                permit.expires_venue_ms = permit.claimed_venue_ms + life_ms
            return place(self, spec, permit)

        gateway.place = unfenced


class Finder(MetaPathFinder):
    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name == GATEWAY else None
        if spec is not None and spec.loader is not None:
            spec.loader = Unfencing(spec.loader)
        return spec


if WITHOUT - {""}:
    sys.meta_path.insert(0, Finder())
