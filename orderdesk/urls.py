"""The addresses of the whole site."""

from django.conf import settings
from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/", admin.site.urls),
    path("", include("orders.urls")),
]
if settings.ORDERDESK_DEMO:
    urlpatterns.append(path("demo/", include("orderdesk.demo.urls")))
