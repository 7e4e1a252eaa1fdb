"""The addresses of the WebSockets."""

from django.urls import re_path

from orders.live import LiveConsumer

websocket_urlpatterns = [re_path(r"^ws/(?P<page>[a-z]+)$", LiveConsumer.as_asgi())]
