"""Who may see and do what in the browser."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import User
from django.test import Client

from orders import journal
from orders.journal import AlertDraft
from orders.models import Alert, Transition
from orders.roles import Role
from tests.journal.conftest import World
from tests.web.conftest import SignIn

pytestmark = pytest.mark.django_db

LADDER = list(Role)
PAGES = {
    "/": Role.VIEWER,
    "/alerts/": Role.VIEWER,
    "/markets/main/BTC/USDT/": Role.VIEWER,
    "/intents/main/{order}/": Role.VIEWER,
    "/ticket/": Role.TRADER,
    "/ticket/main/{order}/": Role.TRADER,
    "/intents/main/{order}/cancel": Role.TRADER,
    "/markets/main/BTC/USDT/halt": Role.OPERATOR,
    "/markets/main/BTC/USDT/resume": Role.OPERATOR,
    "/markets/main/BTC/USDT/reconcile": Role.OPERATOR,
    "/alerts/{alert}/acknowledge": Role.OPERATOR,
}
ACTS = [path for path, _ in PAGES.items() if path.split("/")[-1]]


@pytest.fixture
def addresses(world: World) -> dict[str, str]:
    order = world.submit().client_order_id
    draft = AlertDraft("drift", "t", "warning", "Numbers differ", "Look", market_id=world.btc.pk)
    alert = journal.raise_alert(draft, actor="lane:test", at=datetime.now(UTC))
    return {path: path.format(order=order, alert=alert.pk) for path in PAGES}


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("role", LADDER)
def test_a_page_opens_for_its_role_and_those_above(
    role: Role, path: str, addresses: dict[str, str], sign_in: SignIn
) -> None:
    answer = sign_in(role.value).get(addresses[path])
    allowed = LADDER.index(role) >= LADDER.index(PAGES[path])
    assert answer.status_code == (200 if allowed else 403)
    if not allowed:
        assert f"needs the role {PAGES[path].value}" in answer.content.decode()


@pytest.mark.parametrize("path", ACTS)
@pytest.mark.parametrize("role", LADDER)
def test_an_act_of_somebody_without_the_role_changes_nothing(
    role: Role, path: str, addresses: dict[str, str], sign_in: SignIn
) -> None:
    before = Transition.objects.count()
    answer = sign_in(role.value).post(addresses[path], {"reason": "because"})
    allowed = LADDER.index(role) >= LADDER.index(PAGES[path])
    if allowed:
        assert answer.status_code == 302
    else:
        assert answer.status_code == 403
        assert Transition.objects.count() == before


@pytest.mark.parametrize("path", PAGES)
def test_who_is_not_signed_in_is_sent_to_sign_in(
    path: str, addresses: dict[str, str], client: Client
) -> None:
    answer = client.get(addresses[path])
    assert (answer.status_code, answer.headers["Location"].split("?")[0]) == (302, "/sign-in")
    before = Transition.objects.count()
    assert client.post(addresses[path], {"reason": "x"}).status_code in (302, 405)
    assert Transition.objects.count() == before


@pytest.mark.parametrize("path", PAGES)
def test_a_person_without_a_role_is_told_which_is_needed(
    path: str, addresses: dict[str, str], sign_in: SignIn
) -> None:
    answer = sign_in("").get(addresses[path])
    assert answer.status_code == 403
    assert "you have no role yet" in answer.content.decode()


def test_a_click_in_a_dialog_after_the_session_ended_leads_to_sign_in(client: Client) -> None:
    answer = client.post(
        "/markets/main/BTC/USDT/halt", {"reason": "x"}, headers={"HX-Request": "true"}
    )
    assert answer.headers["HX-Redirect"] == "/sign-in"


@pytest.mark.parametrize("path", ACTS)
def test_looking_at_an_act_does_not_do_it(
    path: str, addresses: dict[str, str], operator: Client
) -> None:
    before = Transition.objects.count()
    assert operator.get(addresses[path]).status_code == 200
    assert Transition.objects.count() == before


def test_a_post_from_another_site_is_refused(world: World, sign_in: SignIn) -> None:
    sign_in("operator")
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(User.objects.get(username="operator"))
    answer = strict.post("/markets/main/BTC/USDT/halt", {"reason": "x"})
    assert answer.status_code == 403
    assert "nothing was done" in answer.content.decode()
    world.btc.refresh_from_db()
    assert world.btc.state == "OPEN"


def test_buttons_show_only_for_who_may_press_them(
    addresses: dict[str, str], viewer: Client, trader: Client, operator: Client
) -> None:
    order = addresses["/intents/main/{order}/"]
    assert "Cancel order" not in viewer.get(order).content.decode()
    assert "Cancel order" in trader.get(order).content.decode()
    assert ">Halt<" not in trader.get("/").content.decode()
    assert ">Halt<" in operator.get("/").content.decode()
    assert "/ticket/" not in viewer.get("/").content.decode()
    assert ">Acknowledge<" not in trader.get("/alerts/").content.decode()


def test_signing_out_needs_a_post(operator: Client) -> None:
    assert operator.get("/sign-out").status_code == 405
    assert operator.post("/sign-out").status_code == 302
    assert operator.get("/").status_code == 302


def test_signing_in_by_password_leads_to_the_page_that_was_asked_for(client: Client) -> None:
    User.objects.create_user("ann", password="correct horse battery")
    form = {"username": "ann", "password": "correct horse battery", "next": "/alerts/"}
    assert client.post("/sign-in", form).headers["Location"] == "/alerts/"


def test_a_sign_in_link_works_once(client: Client) -> None:
    from sesame.utils import get_query_string

    user = User.objects.create_user("ann")
    link = f"/sign-in/link{get_query_string(user)}"
    assert client.get(link).headers["Location"] == "/"
    again = Client().get(link)
    assert again.status_code == 403
    assert "used already or is too old" in again.content.decode()


def test_an_acknowledged_alert_names_its_person(
    addresses: dict[str, str], operator: Client
) -> None:
    operator.post(addresses["/alerts/{alert}/acknowledge"], {"reason": "on it"})
    alert = Alert.objects.get()
    assert (alert.state, alert.acknowledged_by, alert.note) == (
        "ACKNOWLEDGED",
        "user:operator",
        "on it",
    )
