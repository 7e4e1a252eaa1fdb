"""The audit trail: everything that the desk has recorded, for administrators, read-only.

A journal grows to millions of lines. No page here counts a table, and each takes the same number of
queries however many rows there are. A search finds what is equal to the words, by index.
"""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from django.conf import settings
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from orders.models import Account, Alert, ApiToken, Fill, Intent, Lease, Market, Transition
from orders.roles import Role, role_of

PAGE_SIZE = 100
MOST_PAGES = 50  # older rows are found by search and filters
MOST_FOUND = 1000  # intents that one search may stand for

if TYPE_CHECKING:
    _Paginator = Paginator[Any]
    _ModelAdmin = admin.ModelAdmin[Any]
else:
    _Paginator = Paginator
    _ModelAdmin = admin.ModelAdmin


def _is_administrator(request: HttpRequest) -> bool:
    """Asked of the database once in a request, though the pages ask dozens of times."""
    role = getattr(request, "desk_role", "")
    if role == "":
        role = role_of(request.user)
        request.desk_role = role  # type: ignore[attr-defined]
    return role is Role.ADMINISTRATOR


class AuditSite(admin.AdminSite):
    """For administrators alone, through the desk's own sign-in."""

    site_title = site_header = "orderdesk audit"
    index_title = "Records"
    enable_nav_sidebar = False

    def has_permission(self, request: HttpRequest) -> bool:
        return _is_administrator(request)

    def login(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if request.user.is_authenticated:
            raise PermissionDenied("the audit trail is for administrators")
        return redirect_to_login(
            request.GET.get("next") or reverse("admin:index"), settings.LOGIN_URL
        )


class BoundedPaginator(_Paginator):
    """Knows how many pages there are up to MOST_PAGES, and never counts further."""

    @cached_property
    def count(self) -> int:
        rows = self.object_list
        assert isinstance(rows, QuerySet)
        numbers = rows.values_list("pk", flat=True)
        return len(numbers[: self.per_page * MOST_PAGES])


class ReadOnly(_ModelAdmin):
    """Shows rows; adding, changing and deleting are refused, also to superusers."""

    actions = None
    list_per_page = PAGE_SIZE
    list_max_show_all = PAGE_SIZE
    paginator = BoundedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    ordering: ClassVar[tuple[str, ...]] = ("-pk",)
    related: ClassVar[tuple[str, ...]] = ()  # what the list and the page show of other rows

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return _is_administrator(request)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return _is_administrator(request)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).select_related(*self.related)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        return queryset.filter(self.matching(term)), False

    def matching(self, term: str) -> Q:
        """Rows where one of the search fields is equal to the term."""
        found = Q()
        for name in self.search_fields:
            found |= Q(**{name: term})
        return found


def _intents(term: str) -> list[int]:
    """Intents that an ID or a strategy names, by index; the newest of them."""
    for name in ("client_order_id", "venue_order_id", "strategy"):
        rows = Intent.objects.filter(**{name: term}).order_by("-pk")
        if found := list(rows.values_list("pk", flat=True)[:MOST_FOUND]):
            return found
    return []


def _pretty(value: Any) -> SafeString:
    """JSON for reading. Whatever a venue wrote into it stays text."""
    text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)
    return format_html("<pre>{}</pre>", text)


def _link(words: str, name: str, **query: Any) -> SafeString:
    url = reverse(f"admin:orders_{name}_changelist")
    return format_html('<a href="{}?{}">{}</a>', url, urlencode(query), words)


class AccountAdmin(ReadOnly):
    list_display = ("name", "exchange", "sandbox", "active", "absence", "limited_until")
    list_filter = ("active", "sandbox")
    search_fields = ("name", "exchange")
    ordering = ("name",)


class LeaseAdmin(ReadOnly):
    list_display = ("account", "owner", "epoch", "deadline", "taken_at", "recovered_at")
    search_fields = ("account__name", "owner")
    ordering = ("account__name",)
    related = ("account",)


class MarketAdmin(ReadOnly):
    list_display = ("symbol", "account", "state", "halted_reason", "position", "last_event_at")
    list_filter = ("state", "active", "account")
    search_fields = ("symbol", "account__name")
    ordering = ("account__name", "symbol")
    related = ("account",)
    exclude = ("rules",)
    readonly_fields = ("rules_of_the_venue",)

    @admin.display(description="rules")
    def rules_of_the_venue(self, market: Market) -> SafeString:
        return _pretty(market.rules)


class IntentAdmin(ReadOnly):
    list_display = (
        "client_order_id",
        "account",
        "symbol",
        "side",
        "type",
        "quantity",
        "price",
        "state",
        "filled",
        "strategy",
        "venue_order_id",
        "submitted_by",
        "created_at",
    )
    list_filter = ("state", "account", "side", "type", "created_at")
    search_fields = ("client_order_id", "venue_order_id", "strategy")
    search_help_text = "client order ID, venue order ID, strategy or key, whole"
    related = ("account", "market__account")
    exclude = ("params", "contents")
    readonly_fields = ("journal", "params_sent", "contents_admitted")

    def matching(self, term: str) -> Q:
        if found := _intents(term):
            return Q(pk__in=found)
        return Q(key=term)

    @admin.display(description="journal and fills")
    def journal(self, intent: Intent) -> SafeString:
        return format_html(
            "{} · {}",
            _link("transitions", "transition", q=intent.client_order_id),
            _link("fills", "fill", q=intent.client_order_id),
        )

    @admin.display(description="params")
    def params_sent(self, intent: Intent) -> SafeString:
        return _pretty(intent.params)

    @admin.display(description="contents")
    def contents_admitted(self, intent: Intent) -> SafeString:
        return _pretty(intent.contents)


class TransitionAdmin(ReadOnly):
    list_display = (
        "id",
        "at",
        "subject",
        "account",
        "symbol",
        "order",
        "event",
        "from_state",
        "to_state",
        "actor",
        "reason",
    )
    list_display_links = ("id",)
    list_filter = ("subject", "event", "account", "at")
    search_fields = ("actor", "event")
    search_help_text = "client order ID, venue order ID, strategy, actor or event, whole"
    related = ("account", "market__account", "intent", "alert")
    exclude = ("evidence",)
    readonly_fields = ("raw_evidence",)

    def matching(self, term: str) -> Q:
        if found := _intents(term):
            return Q(intent__in=found)
        return super().matching(term)

    @admin.display(description="symbol")
    def symbol(self, line: Transition) -> str:
        return line.market.symbol if line.market else ""

    @admin.display(description="order")
    def order(self, line: Transition) -> str:
        return line.intent.client_order_id if line.intent else ""

    @admin.display(description="evidence")
    def raw_evidence(self, line: Transition) -> SafeString:
        return _pretty(line.evidence)


class FillAdmin(ReadOnly):
    list_display = (
        "venue_trade_id",
        "account",
        "symbol",
        "order",
        "side",
        "quantity",
        "price",
        "fee",
        "fee_currency",
        "at",
        "actor",
    )
    list_filter = ("account", "side", "booked_at")
    search_fields = ("venue_trade_id", "venue_order_id", "actor")
    search_help_text = "client order ID, venue order ID, venue trade ID, strategy or actor, whole"
    related = ("account", "market__account", "intent")

    def matching(self, term: str) -> Q:
        if found := _intents(term):
            return Q(intent__in=found)
        return super().matching(term)

    @admin.display(description="symbol")
    def symbol(self, fill: Fill) -> str:
        return fill.market.symbol

    @admin.display(description="order")
    def order(self, fill: Fill) -> str:
        return fill.intent.client_order_id


class AlertAdmin(ReadOnly):
    list_display = ("kind", "severity", "state", "account", "message", "times", "raised_at", "note")
    list_filter = ("state", "severity", "account", "raised_at")
    search_fields = ("kind", "topic", "acknowledged_by", "resolved_by")
    search_help_text = "client order ID, kind, or who acknowledged or resolved it, whole"
    related = ("account", "market__account", "intent")

    def matching(self, term: str) -> Q:
        if found := _intents(term):
            return Q(intent__in=found)
        return super().matching(term)


class ApiTokenAdmin(ReadOnly):
    """Without the digest. `manage.py api_token` makes and revokes tokens."""

    list_display = ("name", "role", "accounts", "strategies", "created_at", "revoked_at")
    list_filter = ("role",)
    search_fields = ("name", "role")
    ordering = ("name",)
    exclude = ("digest",)


site = AuditSite(name="admin")
site.register(Account, AccountAdmin)
site.register(Lease, LeaseAdmin)
site.register(Market, MarketAdmin)
site.register(Intent, IntentAdmin)
site.register(Transition, TransitionAdmin)
site.register(Fill, FillAdmin)
site.register(Alert, AlertAdmin)
site.register(ApiToken, ApiTokenAdmin)
# People and their roles, by Django's own permissions, which superusers have.
site.register(User, UserAdmin)
site.register(Group, GroupAdmin)
