"""The addresses of the whole site."""

from django.conf import settings
from django.urls import URLPattern, URLResolver, include, path

from orders.admin import site as audit

urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/", audit.urls),
    path("", include("orders.urls")),
]
if settings.ORDERDESK_DEMO:
    urlpatterns.append(path("demo/", include("orderdesk.demo.urls")))
