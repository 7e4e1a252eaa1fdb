"""Who may do what: four roles, each with the rights of the one before, as Django groups."""

from __future__ import annotations

from enum import StrEnum
from typing import Any


class Role(StrEnum):
    VIEWER = "viewer"
    TRADER = "trader"
    OPERATOR = "operator"
    ADMINISTRATOR = "administrator"


class Right(StrEnum):
    VIEW = "view"  # see the board, the intents and the alerts
    TRADE = "trade"  # submit decisions, ask for cancels
    OPERATE = "operate"  # halt, resume, reconcile, acknowledge
    ADMINISTER = "administer"  # the audit trail, users and tokens


_LADDER = (Role.VIEWER, Role.TRADER, Role.OPERATOR, Role.ADMINISTRATOR)
_NEEDS = {
    Right.VIEW: Role.VIEWER,
    Right.TRADE: Role.TRADER,
    Right.OPERATE: Role.OPERATOR,
    Right.ADMINISTER: Role.ADMINISTRATOR,
}


def allows(role: Role | None, right: Right) -> bool:
    """Whether the role has the right. No role has none."""
    return role is not None and _LADDER.index(role) >= _LADDER.index(_NEEDS[right])


def needed_for(right: Right) -> Role:
    """The lowest role that has the right."""
    return _NEEDS[right]


def rights_of(role: Role | None) -> dict[str, bool]:
    """Every right by its name, for templates: `can.operate`."""
    return {right.value: allows(role, right) for right in Right}


def role_of(user: Any) -> Role | None:
    """A signed-in user's highest role; superusers are administrators; None without a group."""
    if not user.is_authenticated or not user.is_active:
        return None
    if user.is_superuser:
        return Role.ADMINISTRATOR
    names = set(user.groups.values_list("name", flat=True))
    held = [role for role in _LADDER if role.value in names]
    return held[-1] if held else None
