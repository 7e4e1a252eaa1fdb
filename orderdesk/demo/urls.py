"""The demo's own addresses, under /demo/."""

from django.urls import path

from orderdesk.demo import views

app_name = "demo"
urlpatterns = [
    path("", views.page, name="page"),
    path("faults", views.inject, name="inject"),
    path("faults/clear", views.clear, name="clear"),
]
