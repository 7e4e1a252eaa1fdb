"""Reads the settings that come from the environment; every error names the variable."""

from __future__ import annotations

import os
import secrets
import tempfile
from importlib.util import find_spec
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_YES = ("1", "true", "yes", "on")
_NO = ("0", "false", "no", "off", "")


def text(name: str, default: str = "") -> str:
    return os.environ.get(name, "").strip() or default


def is_set(name: str) -> bool:
    """Whether the variable was given at all, if only to say no."""
    return bool(os.environ.get(name, "").strip())


def flag(name: str, *, default: bool = False) -> bool:
    value = text(name, "1" if default else "0").lower()
    if value not in _YES + _NO:
        raise ImproperlyConfigured(f"{name} must be 1 or 0, not {value!r}")
    return value in _YES


def whole(name: str, default: int, *, least: int, most: int) -> int:
    value = text(name, str(default))
    if not value.isascii() or not value.isdigit() or not least <= int(value) <= most:
        raise ImproperlyConfigured(
            f"{name} must be a whole number from {least} to {most}, not {value!r}"
        )
    return int(value)


def choice(name: str, default: str, allowed: tuple[str, ...]) -> str:
    """One of a few words, in upper or lower case."""
    value = text(name, default).upper()
    if value not in allowed:
        raise ImproperlyConfigured(f"{name} must be one of {', '.join(allowed)}, not {value!r}")
    return value


def names(name: str, default: tuple[str, ...] = ()) -> list[str]:
    """A list, separated by commas."""
    given = [part.strip() for part in text(name).split(",") if part.strip()]
    return given or list(default)


def hosts() -> list[str]:
    """The host names that the desk answers to: loopback, unless ORDERDESK_HOSTS says otherwise.

    Sign-in over plain HTTP is for loopback only, so other names need ORDERDESK_HTTPS to be set.
    """
    wanted = names("ORDERDESK_HOSTS", LOOPBACK)
    far = [host for host in wanted if host not in LOOPBACK]
    if far and not is_set("ORDERDESK_HTTPS"):
        raise ImproperlyConfigured(
            f"ORDERDESK_HOSTS names {', '.join(far)}: set ORDERDESK_HTTPS=1 and put a proxy with "
            "TLS in front, or ORDERDESK_HTTPS=0 to accept passwords over plain HTTP"
        )
    return wanted


def data_dir(base: Path) -> Path:
    """The folder for everything that the desk writes; made if need be, for its owner alone."""
    path = base / text("ORDERDESK_DATA", "var")
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    except FileExistsError as error:
        raise ImproperlyConfigured(
            f"ORDERDESK_DATA: {path} is not a folder; name a folder"
        ) from error
    except OSError as error:
        raise ImproperlyConfigured(
            f"ORDERDESK_DATA: cannot make the folder {path}: {error.strerror}"
        ) from error
    return path


def redis() -> str:
    """ORDERDESK_REDIS_URL, if what it needs is installed."""
    url = text("ORDERDESK_REDIS_URL")
    if url and find_spec("channels_redis") is None:
        raise ImproperlyConfigured(
            "ORDERDESK_REDIS_URL needs the package channels_redis, which is not installed: "
            "`pip install channels_redis`, or unset the variable, since Redis is not required"
        )
    return url


def secret_key(data: Path) -> str:
    """ORDERDESK_SECRET_KEY, or a key that is made once and kept in the data folder."""
    given = text("ORDERDESK_SECRET_KEY")
    if given:
        return given
    path = data / "secret.key"
    try:
        if not path.exists():
            _make_key(path)
        key = path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise ImproperlyConfigured(
            f"cannot keep a secret key in {path}: {error.strerror}; "
            "set ORDERDESK_SECRET_KEY, or ORDERDESK_DATA to a folder that can be written"
        ) from error
    if len(key) < 50:
        raise ImproperlyConfigured(
            f"{path} holds a key of {len(key)} characters; delete the file to have one made"
        )
    return key


def _make_key(path: Path) -> None:
    """Several processes may start at once: the first link wins and nobody reads half a key."""
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=".secret-")  # mode 0600
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(60))
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        os.unlink(draft)
