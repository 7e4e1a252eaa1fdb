"""Structured logs on standard error: JSON lines, or readable ones on a terminal."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import structlog
from structlog.typing import EventDict, Processor

_SECRET = re.compile(
    r"secret|token|signature|password|passphrase|api_?key|authorization|cookie|sesame|credential",
    re.IGNORECASE,
)
_MAX_DEPTH = 6
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


def redact(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """Put stars in place of every value whose name says that it is a secret, at any depth."""
    return {name: _clean(name, value, 0) for name, value in event.items()}


def _clean(name: str, value: Any, depth: int) -> Any:
    if _SECRET.search(name):
        return "***"
    if depth >= _MAX_DEPTH:
        return value
    if isinstance(value, Mapping):
        return {key: _clean(str(key), inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_clean("", inner, depth + 1) for inner in value]
    return value


def configure(level: str) -> dict[str, Any]:
    """Set structlog up and return Django's LOGGING, so that both write the same lines."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "lines": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": [*shared, structlog.stdlib.ExtraAdder()],
                "processors": _rendering(),
            }
        },
        "filters": {
            "told": {"()": "django.utils.log.CallbackFilter", "callback": _is_news},
        },
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "formatter": "lines",
                "filters": ["told"],
            }
        },
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            # django-q2 tells of every task, uvicorn of every request
            "django-q": {"level": "WARNING"},
            "uvicorn.access": {"level": "WARNING"},
        },
    }


def _is_news(record: logging.LogRecord) -> bool:
    """Not a 503 of /readyz: whoever asks is told, and asks again each second."""
    return getattr(record, "status_code", 0) != HTTPStatus.SERVICE_UNAVAILABLE


def _plain(_logger: Any, _method: str, event: EventDict) -> EventDict:
    event.pop("color_message", None)  # uvicorn says everything twice
    return event


def _rendering() -> list[Processor]:
    clean: list[Processor] = [
        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
        _plain,
        redact,
    ]
    if sys.stderr.isatty():
        return [*clean, structlog.dev.ConsoleRenderer()]
    return [
        *clean,
        structlog.processors.format_exc_info,
        structlog.processors.JSONRenderer(default=str),
    ]
