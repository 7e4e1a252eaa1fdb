"""The account file of the documentation works as it stands, and with every option taken."""

from __future__ import annotations

from pathlib import Path

import pytest

from orderdesk.account_file import load

EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "orderdesk.example.toml"


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BINANCE_KEY", "BINANCE_SECRET", "NAME"):
        monkeypatch.setenv(name, "a-secret")


def test_the_example_trades_on_the_test_network() -> None:
    assert load(EXAMPLE)["main"].sandbox


def test_its_options_are_shown_with_their_defaults(tmp_path: Path) -> None:
    text = EXAMPLE.read_text()
    for field in ("password", "timeout_ms", "request_expiry_ms", "absence", "options"):
        assert f"# {field} = " in text
        text = text.replace(f"# {field} = ", f"{field} = ")
    copy = tmp_path / "orderdesk.toml"
    copy.write_text(text)
    taken, plain = load(copy)["main"], load(EXAMPLE)["main"]
    for field in ("timeout_ms", "request_expiry_ms", "absence", "options"):
        assert getattr(taken, field) == getattr(plain, field)
