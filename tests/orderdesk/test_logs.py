"""Logs never show a secret, at any depth, whoever writes them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from orderdesk.logs import redact

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "name",
    ["secret", "apiKey", "api_key", "X-Signature", "token", "Authorization", "PASSWORD", "sesame"],
)
def test_a_value_named_like_a_secret_is_starred(name: str) -> None:
    event: dict[str, Any] = {
        "event": "sent",
        name: "s3cr3t",
        "request": {"headers": [{name: "s3cr3t"}]},
    }
    assert "s3cr3t" not in json.dumps(redact(None, "info", event))
    assert redact(None, "info", {"event": "sent", "symbol": "BTC/USDT"})["symbol"] == "BTC/USDT"


def test_lines_are_json_on_standard_error_and_secrets_are_starred(tmp_path: Path) -> None:
    code = (
        "import django, logging, structlog; django.setup();"
        "structlog.get_logger('desk').info('placed', token='s3cr3t', symbol='BTC/USDT');"
        "logging.getLogger('other').warning('said %s', 'this', extra={'signature': 's3cr3t'})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={
            **os.environ,
            "ORDERDESK_DATA": str(tmp_path),
            "DJANGO_SETTINGS_MODULE": "orderdesk.settings",
        },
        capture_output=True,
        text=True,
    )
    ours, theirs = map(json.loads, done.stderr.splitlines())
    assert (ours["event"], ours["symbol"], ours["token"]) == ("placed", "BTC/USDT", "***")
    assert (theirs["event"], theirs["signature"]) == ("said this", "***")
    assert ours["timestamp"].endswith("Z")
    assert not done.stdout
