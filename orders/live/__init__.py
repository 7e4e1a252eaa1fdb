"""From the journal to the browsers: one hub per web process, one WebSocket per open page."""

from orders.live.consumer import LiveConsumer
from orders.live.hub import HUB, Hub

__all__ = ["HUB", "Hub", "LiveConsumer"]
