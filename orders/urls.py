"""The addresses of the pages, of the API and of the health checks."""

from django.urls import path

from orders import health
from orders.api import api
from orders.views import acts, board, people, ticket

_MARKET = "markets/<str:account>/<path:symbol>"
_INTENT = "intents/<str:account>/<str:client_order_id>"

urlpatterns = [
    path("", board.board, name="board"),
    path("favicon.ico", board.favicon, name="favicon"),
    path("alerts/", board.alerts, name="alerts"),
    path("alerts/<int:alert_id>/acknowledge", acts.acknowledge, name="acknowledge"),
    # The acts come first: a symbol may hold slashes.
    path(f"{_MARKET}/halt", acts.halt, name="halt"),
    path(f"{_MARKET}/resume", acts.resume, name="resume"),
    path(f"{_MARKET}/reconcile", acts.reconcile, name="reconcile"),
    path(f"{_MARKET}/", board.market, name="market"),
    path(f"{_INTENT}/", board.intent, name="intent"),
    path(f"{_INTENT}/cancel", acts.cancel, name="cancel"),
    path("ticket/", ticket.ticket, name="ticket"),
    path("ticket/<str:account>/<str:client_order_id>/", ticket.placed, name="ticket-placed"),
    path("sign-in", people.sign_in, name="sign-in"),
    path("sign-in/link", people.sign_in_link, name="sign-in-link"),
    path("sign-out", people.sign_out, name="sign-out"),
    path("api/v1/", api.urls),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", health.metrics, name="metrics"),
]
