"""The application that holds the journal, the lanes and the pages."""

from django.apps import AppConfig


class OrdersConfig(AppConfig):
    name = "orders"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "Orders"
