"""Tokens, roles, and the errors that any call may answer with."""

from __future__ import annotations

import hashlib
import io
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client

from orders.models import ApiToken, Market
from orders.roles import Role
from tests.api.conftest import Caller, caller, decision
from tests.api.test_submit import problem

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]


def command(*words: str) -> str:
    out = io.StringIO()
    call_command("api_token", *words, stdout=out, stderr=io.StringIO())
    return out.getvalue()


def test_create_prints_the_token_alone_and_keeps_only_its_digest(btc: Market) -> None:
    printed = command("create", "bot", "--role", "trader", "--account", "main", "--strategy", "s")
    token = printed.strip()
    assert printed == f"{token}\n"
    assert len(token) >= 43
    row = ApiToken.objects.get(name="bot")
    assert row.digest == hashlib.sha256(token.encode()).hexdigest()
    assert (row.role, row.accounts, row.strategies) == ("trader", ["main"], ["s"])
    assert Caller(Client(), token).get("intents").status_code == 200


def test_the_list_shows_no_secret(btc: Market) -> None:
    token = command("create", "bot", "--role", "viewer").strip()
    listed = command("list")
    assert "bot" in listed
    assert "viewer" in listed
    assert token not in listed
    assert ApiToken.objects.get().digest not in listed


def test_a_revoked_token_ends_at_once_and_its_name_is_not_given_again(btc: Market) -> None:
    bot = Caller(Client(), command("create", "bot", "--role", "trader").strip())
    assert bot.get("markets").status_code == 200
    command("revoke", "bot")
    problem(bot.get("markets"), 401, "unauthorized")
    with pytest.raises(CommandError, match="choose another"):
        command("create", "bot", "--role", "trader")
    with pytest.raises(CommandError, match="no token 'nobody'"):
        command("revoke", "nobody")
    with pytest.raises(CommandError, match="no token name"):
        command("create", "a b", "--role", "viewer")


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Bearer odt_x", "Basic YTpi", "odt_x"])
def test_without_a_known_token_every_call_is_401(btc: Market, header: str) -> None:
    for method, path in CALLS:
        response = Client().generic(
            method, f"/api/v1/{path}", b"{}", "application/json", headers={"Authorization": header}
        )
        problem(response, 401, "unauthorized")
        assert response["WWW-Authenticate"].startswith("Bearer")


CALLS = [
    ("POST", "intents"),
    ("GET", "intents"),
    ("GET", "intents/x"),
    ("POST", "intents/x/cancel"),
    ("GET", "markets"),
    ("POST", "markets/main/BTC%2FUSDT/halt"),
    ("POST", "markets/main/BTC%2FUSDT/resume"),
    ("POST", "markets/main/BTC%2FUSDT/reconcile"),
    ("GET", "alerts"),
    ("POST", "alerts/1/acknowledge"),
    ("GET", "transitions"),
]


def test_a_browser_session_is_no_token(btc: Market) -> None:
    client = Client()
    client.force_login(User.objects.create_superuser("ada", password="x" * 20))
    response = client.post("/api/v1/intents", decision(), content_type="application/json")
    problem(response, 401, "unauthorized")


@pytest.mark.parametrize(
    ("role", "trades", "operates"),
    [
        (Role.VIEWER, False, False),
        (Role.TRADER, True, False),
        (Role.OPERATOR, True, True),
        (Role.ADMINISTRATOR, True, True),
    ],
)
def test_a_role_can_do_what_it_is_for_and_no_more(
    btc: Market, role: Role, trades: bool, operates: bool
) -> None:
    bot = caller("bot", role)
    assert bot.get("intents").status_code == 200
    submitted = bot.post("intents", decision())
    halted = bot.post("markets/main/BTC%2FUSDT/halt", {"reason": "x"})
    acknowledged = bot.post("alerts/1/acknowledge", {"note": "x"})
    for response, allowed in (
        (submitted, trades),
        (bot.post("intents/x/cancel"), trades),
        (halted, operates),
        (acknowledged, operates),
    ):
        if allowed:
            assert response.status_code != 403
        else:
            problem(response, 403, "forbidden")


def test_a_token_of_a_role_that_no_longer_exists_can_do_nothing(viewer: Caller) -> None:
    ApiToken.objects.update(role="emperor")
    problem(viewer.get("intents"), 403, "forbidden")


@pytest.mark.parametrize("path", ["", "nothing", "intents/", "intents/a/b", "markets/main/halt"])
def test_an_unknown_address_is_a_problem(viewer: Caller, path: str) -> None:
    problem(viewer.get(path), 404, "not_found")


@pytest.mark.parametrize(
    ("method", "path"), [("DELETE", "intents"), ("PUT", "intents/x"), ("GET", "intents/x/cancel")]
)
def test_a_wrong_method_is_a_problem_that_names_the_right_ones(
    viewer: Caller, method: str, path: str
) -> None:
    headers = {"Authorization": f"Bearer {viewer.token}"}
    response = Client().generic(method, f"/api/v1/{path}", headers=headers)
    body = problem(response, 405, "method_not_allowed")
    assert response["Allow"] in body["detail"]


def test_a_failure_of_ours_is_a_problem_without_inside_knowledge(
    trader: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("the inside of the desk")

    monkeypatch.setattr("orders.intake.submit_many", fail)
    response = trader.post("intents", decision())
    problem(response, 500, "internal")
    assert b"inside" not in response.content


def test_nothing_stays_in_a_cache(viewer: Caller) -> None:
    assert viewer.get("intents")["Cache-Control"] == "no-store"


def test_the_document_describes_every_call_with_examples_and_its_errors(btc: Market) -> None:
    document = Client().get("/api/v1/openapi.json").json()
    described = {
        (method.upper(), path.removeprefix("/api/v1/"))
        for path, operations in document["paths"].items()
        for method in operations
    }
    assert len(described) == len(CALLS)
    submit = document["paths"]["/api/v1/intents"]["post"]
    examples = submit["requestBody"]["content"]["application/json"]["examples"]
    assert {"one", "list"} == set(examples)
    assert set(submit["responses"]) >= {"200", "201", "409", "422", "401", "403", "default"}
    assert list(submit["responses"]["422"]["content"]) == ["application/problem+json"]
    assert submit["security"]


def test_the_example_of_the_document_is_a_decision_that_is_admitted(trader: Caller) -> None:
    document = Client().get("/api/v1/openapi.json").json()
    body = document["paths"]["/api/v1/intents"]["post"]["requestBody"]
    example = body["content"]["application/json"]["examples"]["one"]["value"]
    example["decided_at"] = decision()["decided_at"]
    assert trader.post("intents", example).status_code == 201


def test_the_documentation_page_needs_no_other_host_and_no_inline_script(btc: Market) -> None:
    response = Client().get("/api/v1/docs")
    page = response.content.decode()
    assert response.status_code == 200
    assert "//" not in page.replace("///", "")
    assert "unsafe-inline" not in response["Content-Security-Policy"]
    for script in page.split("<script")[1:]:
        assert 'src="/static/' in script or 'type="application/json"' in script
