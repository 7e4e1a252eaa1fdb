"""The account file: a mistake is named with its place and its remedy; no secret is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orderdesk.account_file import AccountFileError, load
from venues.gateway import SecretText, VenueSettings

ENV = {"KEY": "the-key", "SECRET": "the-secret", "EMPTY": " "}
GOOD = {
    "exchange": '"binance"',
    "api_key": '"env:KEY"',
    "secret": '"env:SECRET"',
    "symbols": '["BTC/USDT", "ETH/USDT"]',
}


def written(folder: Path, text: str) -> Path:
    path = folder / "orderdesk.toml"
    path.write_text(text, encoding="utf-8")
    return path


def account(**changes: str | None) -> str:
    fields = {name: value for name, value in {**GOOD, **changes}.items() if value is not None}
    return "[accounts.main]\n" + "".join(f"{name} = {value}\n" for name, value in fields.items())


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(AccountFileError) as caught:
        load(written(folder, text), ENV)
    return str(caught.value)


def test_an_account_needs_four_fields_and_the_rest_has_defaults(tmp_path: Path) -> None:
    accounts = load(written(tmp_path, account()), ENV)
    assert accounts == {
        "main": VenueSettings(
            account="main",
            exchange="binance",
            symbols=("BTC/USDT", "ETH/USDT"),
            api_key=SecretText("the-key"),
            secret=SecretText("the-secret"),
            password=SecretText(""),
            sandbox=False,
            base_url=None,
            timeout_ms=5000,
            request_expiry_ms=3000,
            absence="human",
            stream=True,
            options={},
        )
    }


def test_every_field_is_read(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("from-a-file\n")
    text = account(
        api_key=f'"file:{key}"',
        password='"env:SECRET"',
        sandbox="true",
        base_url='"http://127.0.0.1:9100/"',
        timeout_ms="2500",
        request_expiry_ms="1500",
        absence="90",
        stream="false",
        options='{ verbose = false, createOrder = { timeInForce = "GTC" } }',
    )
    read = load(written(tmp_path, text), ENV)["main"]
    assert (read.api_key, read.password) == ("from-a-file", "the-secret")
    assert (read.sandbox, read.base_url) == (True, "http://127.0.0.1:9100")
    assert (read.timeout_ms, read.request_expiry_ms, read.absence) == (2500, 1500, 90)
    assert not read.stream
    assert read.options["createOrder"] == {"timeInForce": "GTC"}
    assert "the-secret" not in repr(read)


def test_several_accounts_are_read_in_order(tmp_path: Path) -> None:
    second = account().replace("main", "other-1")
    assert list(load(written(tmp_path, account() + second), ENV)) == ["main", "other-1"]


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"exchange": None}, "exchange", "is missing; add it"),
        ({"symbols": None}, "symbols", "is missing; add it"),
        ({"secret": None}, "secret", "is missing; add it"),
        ({"exchange": '"kraken9"'}, "exchange", "supported: binance"),
        ({"exchange": "7"}, "exchange", "must be text"),
        ({"symbols": '"BTC/USDT"'}, "symbols", "must be a list"),
        ({"symbols": "[]"}, "symbols", "must be a list of 1"),
        ({"symbols": '["BTCUSDT"]'}, "symbols", "'BTCUSDT' is no symbol"),
        ({"symbols": '["BTC/USDT", "BTC/USDT"]'}, "symbols", "twice"),
        ({"symbols": "[1]"}, "symbols", "is no symbol"),
        ({"api_key": '"env:NOT_SET"'}, "api_key", "variable NOT_SET is not set; set it"),
        ({"api_key": '"env:EMPTY"'}, "api_key", "variable EMPTY is not set"),
        ({"secret": '"file:/no/such/file"'}, "secret", "file /no/such/file cannot be read"),
        ({"sandbox": '"yes"'}, "sandbox", "must be true or false"),
        ({"base_url": '"ftp://host"'}, "base_url", "must be like"),
        ({"base_url": '"127.0.0.1:9100"'}, "base_url", "must be like"),
        ({"base_url": '"http://"'}, "base_url", "must be like"),
        ({"base_url": '"http://host:port"'}, "base_url", "must be like"),
        ({"base_url": '"http://host/api"'}, "base_url", "remove what follows"),
        ({"base_url": '"http://me:pw@host"'}, "base_url", "without a user name"),
        ({"timeout_ms": "99"}, "timeout_ms", "must be 100 to 120000 milliseconds, not 99"),
        ({"timeout_ms": "true"}, "timeout_ms", "whole number of milliseconds"),
        ({"timeout_ms": "2.5"}, "timeout_ms", "whole number of milliseconds"),
        ({"request_expiry_ms": "60001"}, "request_expiry_ms", "must be 100 to 60000"),
        ({"absence": '"robot"'}, "absence", '"human" or a number of seconds'),
        ({"absence": "0"}, "absence", "must be 1 to"),
        ({"absence": "true"}, "absence", "whole number of seconds"),
        ({"options": "3"}, "options", "must be a table"),
        ({"options": '{ a = { apiKey = "x" } }'}, "options", "apiKey looks like a secret"),
    ],
)
def test_a_mistake_is_named_by_file_account_and_field(
    tmp_path: Path, changes: dict[str, Any], field: str, words: str
) -> None:
    said = refusal(tmp_path, account(**changes))
    assert said.startswith(f"{tmp_path}/orderdesk.toml: accounts.main.{field}: ")
    assert words in said


@pytest.mark.parametrize("field", ["api_key", "secret", "password"])
@pytest.mark.parametrize("value", ['"hunter2"', '"vault:hunter2"', '"env:"', "42", '["hunter2"]'])
def test_a_secret_in_the_file_is_refused_and_not_repeated(
    tmp_path: Path, field: str, value: str
) -> None:
    said = refusal(tmp_path, account(**{field: value}))
    assert f"accounts.main.{field}: a secret does not belong in this file" in said
    assert '"env:NAME"' in said
    assert '"file:/path"' in said
    assert "hunter2" not in said


def test_an_empty_secret_file_is_named(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("\n")
    assert f"the file {key} is empty" in refusal(tmp_path, account(secret=f'"file:{key}"'))


def test_the_example_in_the_documentation_can_be_read() -> None:
    example = Path(__file__).parents[2] / "docs" / "orderdesk.example.toml"
    environ = {"BINANCE_KEY": "k", "BINANCE_SECRET": "s"}
    assert load(example, environ)["main"].symbols


def test_an_unreadable_secret_is_told_by_its_path_alone(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_bytes(b"hunter2\xff")
    said = refusal(tmp_path, account(secret=f'"file:{key}"'))
    assert str(key) in said
    assert "hunter2" not in said


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            account(simbols='["A/B"]'),
            "accounts.main: unknown field 'simbols'; did you mean symbols?",
        ),
        (account(apikey='"x"'), "unknown field 'apikey'; did you mean api_key?"),
        (account(qqq="1"), "unknown field 'qqq'; known: exchange, "),
        ("[account.main]\n", "unknown field 'account'; did you mean accounts?"),
        ("accounts = 3\n", "accounts: there is none; begin one with [accounts.main]"),
        ("", "accounts: there is none; begin one with [accounts.main]"),
        ("[accounts]\nmain = 3\n", "accounts.main: must be a table"),
        ('[accounts."a b"]\n', "accounts.a b: a name is up to 64 letters"),
        ("[accounts.main\n", "is not valid TOML"),
    ],
)
def test_a_wrong_shape_is_named_with_the_nearest_name(
    tmp_path: Path, text: str, words: str
) -> None:
    assert words in refusal(tmp_path, text)


def test_a_missing_file_tells_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(
        AccountFileError, match=r"none\.toml: .*docs/orderdesk\.example\.toml.*ORDERDESK_CONFIG"
    ):
        load(tmp_path / "none.toml", ENV)
