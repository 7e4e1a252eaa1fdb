"""A desk with one account, and people of every role."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from orders.roles import Role
from tests.journal.conftest import World, make_world

SignIn = Callable[[str], Client]


@pytest.fixture
def world(db: None) -> World:
    return make_world()


@pytest.fixture
def sign_in(db: None) -> SignIn:
    """A browser of somebody with this role; "" for a person without one."""

    def client_of(role: str) -> Client:
        user, _ = User.objects.get_or_create(username=role or "nobody")
        if role:
            user.groups.set([Group.objects.get(name=Role(role).value)])
        client = Client(enforce_csrf_checks=False)
        client.force_login(user)
        return client

    return client_of


@pytest.fixture
def operator(sign_in: SignIn) -> Client:
    return sign_in("operator")


@pytest.fixture
def trader(sign_in: SignIn) -> Client:
    return sign_in("trader")


@pytest.fixture
def viewer(sign_in: SignIn) -> Client:
    return sign_in("viewer")
