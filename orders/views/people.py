"""Signing in and out."""

from __future__ import annotations

from django.contrib.auth import views as auth
from django.core.exceptions import PermissionDenied
from django.http import HttpResponseBase
from sesame.views import LoginView as SesameView

sign_in = auth.LoginView.as_view(template_name="sign_in.html", redirect_authenticated_user=True)
sign_out = auth.LogoutView.as_view(http_method_names=["post", "options"])


class LinkView(SesameView):  # type: ignore[misc]
    """Signs in by a link that works once and for a short time."""

    def login_failed(self) -> HttpResponseBase:
        raise PermissionDenied(
            "This sign-in link was used already or is too old. Sign in with a password, or ask "
            "for a new link."
        )


sign_in_link = LinkView.as_view()
