"""API tokens: 256 random bits, shown once. Only the SHA-256 of a token is kept."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Sequence

import structlog
from django.db import IntegrityError

from orders.clock import SYSTEM
from orders.models import ApiToken
from orders.roles import Role

log = structlog.get_logger(__name__)

MARK = "odt_"  # lets a scanner that looks for leaked secrets recognise one
RANDOM_BYTES = 32
MAX_LENGTH = 128
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class TokenError(ValueError):
    """The token cannot be made or revoked; the text says why and what to do."""


def create(
    name: str, role: Role, *, accounts: Sequence[str] = (), strategies: Sequence[str] = ()
) -> str:
    """Make a token and return it; it cannot be read again. Empty lists mean all.

    Raises TokenError for a name that is taken or cannot be used.
    """
    if not _NAME.fullmatch(name):
        raise TokenError(
            f"{name!r} is no token name: use up to 64 letters, digits, dots, dashes and underscores"
        )
    token = MARK + secrets.token_urlsafe(RANDOM_BYTES)
    try:
        ApiToken.objects.create(
            name=name,
            digest=_digest(token),
            role=role.value,
            accounts=sorted(set(accounts)),
            strategies=sorted(set(strategies)),
            created_at=SYSTEM.now(),
        )
    except IntegrityError:
        raise TokenError(
            f"there is a token {name!r}, or was; the journal names actors by it, so choose another"
        ) from None
    log.info("api_access_created", name=name, role=role.value)
    return token


def revoke(name: str) -> None:
    """End a token at once; twice is once. Raises TokenError for an unknown name."""
    row = ApiToken.objects.filter(name=name).first()
    if row is None:
        raise TokenError(f"there is no token {name!r}; `api_token list` shows all")
    ApiToken.objects.filter(pk=row.pk, revoked_at=None).update(revoked_at=SYSTEM.now())
    log.info("api_access_revoked", name=name)


def authenticate(token: str) -> ApiToken | None:
    """The token's row; None for one that is unknown or revoked."""
    if not token.startswith(MARK) or len(token) > MAX_LENGTH or not token.isascii():
        return None
    return ApiToken.objects.filter(digest=_digest(token), revoked_at=None).first()


def _digest(token: str) -> str:
    """Without salt or stretching: 256 random bits cannot be guessed from their digest."""
    return hashlib.sha256(token.encode("ascii")).hexdigest()
