"""manage.py desk_web: one web process. `desk` starts it; alone it listens for itself."""

from __future__ import annotations

import asyncio
import os
import socket
import warnings
from typing import Any

import uvicorn
from django.conf import settings
from django.core.management.base import BaseCommand

from orderdesk import guard
from orderdesk.processes import LISTEN_FD, PULSE_FD

PULSE_S = 1.0
GRACE_S = 2  # for requests under way; streams would go on for ever


class Command(BaseCommand):
    help = "Serve pages, API and WebSockets until SIGTERM."

    def handle(self, *_args: Any, **_options: Any) -> None:
        server = uvicorn.Server(
            uvicorn.Config(
                "orderdesk.asgi:application",
                host=settings.ORDERDESK_BIND,
                port=settings.ORDERDESK_PORT,
                lifespan="off",
                log_config=None,  # Django's logging covers it
                access_log=False,
                server_header=False,
                proxy_headers=settings.HTTPS,
                timeout_graceful_shutdown=GRACE_S,
            )
        )
        # WhiteNoise hands out files as plain iterators; they are small, and read in a thread.
        warnings.filterwarnings("ignore", "StreamingHttpResponse must consume synchronous")
        guard.watch(guard.terminate)
        with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
            runner.run(self._serve(server))

    async def _serve(self, server: uvicorn.Server) -> None:
        pulse = asyncio.create_task(_pulse())
        try:
            await server.serve(_inherited())
        finally:
            pulse.cancel()


def _inherited() -> list[socket.socket] | None:
    """The socket that the supervisor listens on for all of its web processes."""
    fd = os.environ.get(LISTEN_FD)
    return [socket.socket(fileno=int(fd))] if fd else None


async def _pulse() -> None:
    """Show the supervisor that the loop turns."""
    fd = os.environ.get(PULSE_FD)
    while fd:
        os.write(int(fd), b".")
        await asyncio.sleep(PULSE_S)
