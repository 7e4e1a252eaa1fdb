"""The account file: which accounts the desk drives, and where their secrets are.

Secrets stand in the environment or in files of their own, never in the account file itself, and
no error prints one. docs/orderdesk.example.toml explains every field.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from venues.gateway import SecretText, VenueSettings
from venues.profiles import profile_of

EXAMPLE = "docs/orderdesk.example.toml"
REQUIRED = ("exchange", "api_key", "secret", "symbols")
TIMEOUT_MS = (100, 120_000)
LEAST_EXPIRY_MS = 100
ABSENCE_S = (1, 7 * 86_400)
MAX_SYMBOLS = 500
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_SYMBOL = re.compile(r"[A-Z0-9]+/[A-Z0-9]+(:[A-Z0-9-]+)?")
# Among ccxt's options, a key of such a name would be a secret in the file.
_SECRET_OPTION = re.compile(r"(?i)(api_?key|secret|password|passphrase|private_?key)$")


class AccountFileError(ValueError):
    """The account file cannot be used. The text names the file, the field and the remedy."""


def load(path: Path, environ: Mapping[str, str] = os.environ) -> dict[str, VenueSettings]:
    """Every account by name, secrets resolved. Raises AccountFileError."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise AccountFileError(
            f"cannot read the account file {path}: {error.strerror}; copy {EXAMPLE} there, or set "
            "ORDERDESK_CONFIG to where it is"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise AccountFileError(f"{path} is not valid TOML: {error}") from None
    _refuse_unknown(str(path), tables, ("accounts",))
    accounts = tables.get("accounts")
    if not isinstance(accounts, dict) or not accounts:
        raise AccountFileError(f"{path}: accounts: there is none; begin one with [accounts.main]")
    return {name: _account(path, name, table, environ) for name, table in accounts.items()}


@dataclass(frozen=True, slots=True)
class _Account:
    """One table of the file; its errors say which."""

    where: str
    table: dict[str, Any]
    environ: Mapping[str, str]

    def wrong(self, name: str, words: str) -> AccountFileError:
        return AccountFileError(f"{self.where}.{name}: {words}")

    def text(self, name: str) -> str:
        value = self.table[name]
        if not isinstance(value, str) or not value.strip():
            raise self.wrong(name, f"must be text in quotes, not {_type(value)}")
        return value

    def flag(self, name: str) -> bool:
        value = self.table[name]
        if not isinstance(value, bool):
            raise self.wrong(name, f"must be true or false, not {_type(value)}")
        return value

    def whole(self, name: str, least: int, most: int, unit: str) -> int:
        value = self.table[name]
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.wrong(name, f"must be a whole number of {unit}, not {_type(value)}")
        if not least <= value <= most:
            raise self.wrong(name, f"must be {least} to {most} {unit}, not {value}")
        return value

    def exchange(self) -> str:
        try:
            return profile_of(self.text("exchange")).exchange
        except KeyError as error:
            raise self.wrong("exchange", error.args[0]) from None

    def symbols(self) -> tuple[str, ...]:
        value = self.table["symbols"]
        if not isinstance(value, list) or not 0 < len(value) <= MAX_SYMBOLS:
            raise self.wrong("symbols", f'must be a list of 1 to {MAX_SYMBOLS}, like ["BTC/USDT"]')
        for symbol in value:
            if not isinstance(symbol, str) or not _SYMBOL.fullmatch(symbol):
                raise self.wrong("symbols", f'{symbol!r} is no symbol; write it like "BTC/USDT"')
            if value.count(symbol) > 1:
                raise self.wrong("symbols", f"{symbol!r} is there twice; remove one")
        return tuple(value)

    def secret(self, name: str) -> SecretText:
        """Resolves "env:NAME" and "file:/path"; never repeats what stands there otherwise."""
        value = self.table[name]
        kind, _, place = value.partition(":") if isinstance(value, str) else ("", "", "")
        if kind not in ("env", "file") or not place:
            raise self.wrong(
                name,
                "a secret does not belong in this file; keep it elsewhere and write "
                '"env:NAME" for an environment variable or "file:/path" for a file',
            )
        return SecretText(
            self._variable(name, place) if kind == "env" else self._secret_file(name, place)
        )

    def _variable(self, name: str, variable: str) -> str:
        value = self.environ.get(variable, "").strip()
        if not value:
            raise self.wrong(name, f"the environment variable {variable} is not set; set it")
        return value

    def _secret_file(self, name: str, path: str) -> str:
        try:
            value = Path(path).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            kind = error.strerror if isinstance(error, OSError) else "not UTF-8"
            raise self.wrong(
                name, f"the file {path} cannot be read ({kind}); check its path and permissions"
            ) from None
        if not value:
            raise self.wrong(name, f"the file {path} is empty; put the secret into it")
        return value

    def base_url(self) -> str:
        value = self.text("base_url")
        try:
            parts = urlsplit(value)
            good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            good = False
        if not good:
            raise self.wrong("base_url", 'must be like "http://127.0.0.1:9100"')
        if "@" in parts.netloc:
            raise self.wrong("base_url", "must be without a user name and password; remove them")
        if parts.path not in ("", "/") or parts.query or parts.fragment:
            raise self.wrong("base_url", "replaces scheme and host only; remove what follows them")
        return f"{parts.scheme}://{parts.netloc}"

    def request_expiry_ms(self) -> int:
        most = profile_of(self.exchange()).max_expiry_ms
        return self.whole("request_expiry_ms", LEAST_EXPIRY_MS, most, "milliseconds")

    def absence(self) -> str | int:
        if self.table["absence"] == "human":
            return "human"
        if isinstance(self.table["absence"], str):
            raise self.wrong("absence", 'must be "human" or a number of seconds to wait')
        return self.whole("absence", *ABSENCE_S, "seconds")

    def options(self) -> dict[str, Any]:
        value = self.table["options"]
        if not isinstance(value, dict):
            raise self.wrong("options", f"must be a table of ccxt options, not {_type(value)}")
        for name in _names(value):
            if _SECRET_OPTION.search(name):
                raise self.wrong("options", f"{name} looks like a secret; use the account's fields")
        return value


_FIELDS: dict[str, Callable[[_Account], Any]] = {
    "exchange": _Account.exchange,
    "api_key": lambda account: account.secret("api_key"),
    "secret": lambda account: account.secret("secret"),
    "password": lambda account: account.secret("password"),
    "symbols": _Account.symbols,
    "sandbox": lambda account: account.flag("sandbox"),
    "base_url": _Account.base_url,
    "timeout_ms": lambda account: account.whole("timeout_ms", *TIMEOUT_MS, "milliseconds"),
    "request_expiry_ms": _Account.request_expiry_ms,
    "absence": _Account.absence,
    "stream": lambda account: account.flag("stream"),
    "options": _Account.options,
}


def _account(path: Path, name: str, table: Any, environ: Mapping[str, str]) -> VenueSettings:
    where = f"{path}: accounts.{name}"
    if not _NAME.fullmatch(name):
        raise AccountFileError(f"{where}: a name is up to 64 letters, digits, - and _")
    if not isinstance(table, dict):
        raise AccountFileError(f"{where}: must be a table; write [accounts.{name}]")
    _refuse_unknown(where, table, _FIELDS)
    for field in REQUIRED:
        if field not in table:
            raise AccountFileError(f"{where}.{field}: is missing; add it, see {EXAMPLE}")
    account = _Account(where, table, environ)
    return VenueSettings(account=name, **{field: _FIELDS[field](account) for field in table})


def _refuse_unknown(where: str, table: Mapping[str, Any], known: Iterable[str]) -> None:
    names = list(known)
    for name in table:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
            remedy = f"did you mean {near[0]}?" if near else f"known: {', '.join(names)}"
            raise AccountFileError(f"{where}: unknown field {name!r}; {remedy}")


def _names(table: Mapping[str, Any]) -> Iterable[str]:
    for name, value in table.items():
        yield name
        if isinstance(value, Mapping):
            yield from _names(value)


def _type(value: Any) -> str:
    words = {bool: "true or false", int: "a number", float: "a fraction", str: "text"}
    return words.get(type(value), "a list or table")
