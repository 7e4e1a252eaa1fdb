"""Who calls, what the token lets them do, and what it lets them see."""

from __future__ import annotations

from typing import Any

from django.db.models import Q
from django.http import HttpRequest
from ninja.security import HttpBearer

from orders import tokens
from orders.api.problems import ProblemError
from orders.models import ApiToken
from orders.roles import Right, Role, allows


class Bearer(HttpBearer):
    """The only way in. Browser sessions do not count, so no other site can make a browser act."""

    def authenticate(self, request: HttpRequest, token: str) -> ApiToken | None:
        return tokens.authenticate(token.strip())


def caller(request: HttpRequest, right: Right) -> ApiToken:
    """The token behind a call. Raises ProblemError 403 where its role lacks the right."""
    token = request.auth  # type: ignore[attr-defined]
    assert isinstance(token, ApiToken)
    role = Role(token.role) if token.role in set(Role) else None
    if not allows(role, right):
        raise ProblemError(
            403, "forbidden", f"the token {token.name!r} is a {token.role}'s; this needs more"
        )
    return token


def actor(token: ApiToken) -> str:
    """How the journal names the token."""
    return f"token:{token.name}"


def check_decision(token: ApiToken, account: str, strategy: str) -> None:
    """Raises ProblemError 403 where the token may not decide for this account or strategy."""
    for word, value, allowed in (
        ("account", account, token.accounts),
        ("strategy", strategy, token.strategies),
    ):
        if allowed and value not in allowed:
            raise ProblemError(
                403,
                "forbidden",
                f"the token {token.name!r} is not for {word} {value!r}; it is for "
                + ", ".join(allowed),
                field=word,
            )


def check_whole_market(token: ApiToken) -> None:
    """A market belongs to all its strategies. Raises ProblemError 403 for a token of only some."""
    if token.strategies:
        raise ProblemError(
            403,
            "forbidden",
            f"the token {token.name!r} is for some strategies only; this touches all of a market's",
        )


def in_accounts(token: ApiToken, name: str = "account__name") -> Q:
    """Rows of the accounts that the token may see; rows of no account are for unrestricted ones."""
    return Q(**{f"{name}__in": token.accounts}) if token.accounts else Q()


def in_strategies(token: ApiToken, name: str = "strategy") -> Q:
    return Q(**{f"{name}__in": token.strategies}) if token.strategies else Q()


def visible_intents(token: ApiToken) -> Q:
    return in_accounts(token) & in_strategies(token)


def visible_alerts(token: ApiToken) -> Q:
    """An alert about an intent is for those who may see the intent, any other for the account."""
    return in_accounts(token) & (
        Q(intent=None) | in_strategies(token, "intent__strategy") if token.strategies else Q()
    )


def may_see(token: ApiToken, line: Any) -> bool:
    """The same for a line of the journal that is at hand."""
    account = line.account.name if line.account_id else None
    if token.accounts and account not in token.accounts:
        return False
    return not (
        token.strategies and line.intent_id and line.intent.strategy not in token.strategies
    )
