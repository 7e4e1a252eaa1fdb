"""Collects the static files when they have changed, so that nobody has to think of it."""

from __future__ import annotations

import fcntl
import hashlib
from importlib.metadata import version
from pathlib import Path

import structlog
from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command

log = structlog.get_logger(__name__)


def collect() -> None:
    """Make STATIC_ROOT current. Several desks may share it and start at once."""
    if settings.DEBUG:
        return  # served from where they lie
    root = Path(settings.STATIC_ROOT)
    root.mkdir(parents=True, exist_ok=True)
    mark = root / ".collected"
    with (root / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = _fingerprint()
        if mark.exists() and mark.read_text() == wanted:
            return
        log.info("collecting_static_files", folder=str(root))
        call_command("collectstatic", interactive=False, verbosity=0)
        mark.write_text(wanted)


def _fingerprint() -> str:
    """Of every source file's name, size and time, and of what processes them."""
    digest = hashlib.sha256(f"{version('django')} {version('whitenoise')}".encode())
    for finder in get_finders():
        for name, storage in sorted(finder.list([]), key=lambda found: found[0]):
            facts = Path(storage.path(name)).stat()
            digest.update(f"{name} {facts.st_size} {facts.st_mtime_ns}\n".encode())
    return digest.hexdigest()
