"""Who may see and do what: the first line of every view."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, cast

from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import resolve_url
from django_htmx.http import HttpResponseClientRedirect
from django_htmx.middleware import HtmxDetails

from orders.roles import Right, Role, allows, needed_for, role_of

P = ParamSpec("P")


class DeskRequest(HttpRequest):
    """A request of a signed-in user whose role was checked."""

    user: User
    htmx: HtmxDetails
    role: Role


View = Callable[Concatenate[DeskRequest, P], HttpResponse]
Checked = Callable[Concatenate[HttpRequest, P], HttpResponseBase]


def needs(right: Right) -> Callable[[View[P]], Checked[P]]:
    """Let in who has the right; others sign in, or are told which role is needed."""

    def decorate(view: View[P]) -> Checked[P]:
        @functools.wraps(view)
        def checked(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            asked = cast("DeskRequest", request)
            if not request.user.is_authenticated:
                return _sign_in(asked)
            role = role_of(request.user)
            if role is None or not allows(role, right):
                raise PermissionDenied(_refusal(role, right))
            asked.role = role
            return view(asked, *args, **kwargs)

        return checked

    return decorate


def actor_of(request: DeskRequest) -> str:
    """How the journal names the person."""
    return f"user:{request.user.get_username()}"


def _sign_in(request: DeskRequest) -> HttpResponseBase:
    if request.htmx:  # a redirect would be followed inside the page
        return HttpResponseClientRedirect(resolve_url(settings.LOGIN_URL))
    back = request.get_full_path() if request.method == "GET" else "/"
    return redirect_to_login(back)


def _refusal(role: Role | None, right: Right) -> str:
    have = f"you are {_a(role)}" if role else "you have no role yet"
    return f"This needs the role {needed_for(right).value} or above; {have}."


def _a(role: Role) -> str:
    return f"{'an' if role.value[0] in 'aeiou' else 'a'} {role.value}"
