"""Django's settings: safe for production as they stand, moved by the environment.

ORDERDESK_DEBUG=1 loosens them for development; README.md lists the variables.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import dj_database_url
from django.core.exceptions import ImproperlyConfigured

from orderdesk import environment, logs

BASE_DIR = Path(__file__).resolve().parent.parent

# What the environment says
DEBUG = environment.flag("ORDERDESK_DEBUG")
HTTPS = environment.flag("ORDERDESK_HTTPS")
ALLOWED_HOSTS = environment.hosts()
ORDERDESK_DEMO = environment.flag("ORDERDESK_DEMO")
ORDERDESK_BIND = environment.text("ORDERDESK_BIND", "127.0.0.1")
ORDERDESK_PORT = environment.whole("ORDERDESK_PORT", 8000, least=0, most=65_535)  # 0: any free one
ORDERDESK_DATA = environment.data_dir(BASE_DIR)
ORDERDESK_CONFIG = BASE_DIR / (
    ORDERDESK_DATA / "demo" / "orderdesk.toml"
    if ORDERDESK_DEMO
    else environment.text("ORDERDESK_CONFIG", "orderdesk.toml")
)
ORDERDESK_LANES = environment.whole("ORDERDESK_LANES", 2, least=1, most=64)
ORDERDESK_WEBS = environment.whole("ORDERDESK_WEBS", 1, least=1, most=64)
# A lane ends after this long and another takes over, so that no process grows old.
ORDERDESK_SLICE_S = environment.whole("ORDERDESK_SLICE_S", 600, least=2, most=86_400)
# How long an order may be in doubt before its market is halted and people are told.
ORDERDESK_DOUBT_S = environment.whole("ORDERDESK_DOUBT_S", 30, least=1, most=3600)
# Decisions older than this are refused, so that a key may be archived after it.
ORDERDESK_HORIZON_S = int(timedelta(days=1).total_seconds())
SECRET_KEY = environment.secret_key(ORDERDESK_DATA)

# Application
ROOT_URLCONF = "orderdesk.urls"
ASGI_APPLICATION = "orderdesk.asgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "channels",
    "csp",
    "django_htmx",
    "django_q",
    "ninja",
    "orders",
    *(["orderdesk.demo"] if ORDERDESK_DEMO else []),
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# Database. No ATOMIC_REQUESTS: with IMMEDIATE it would make every page a writer.
SQLITE_OPTIONS = {
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": (
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;"
        " PRAGMA busy_timeout=20000;"
    ),
}


def _database() -> dict[str, Any]:
    url = environment.text("DATABASE_URL", f"sqlite:///{ORDERDESK_DATA / 'db.sqlite3'}")
    try:
        database: dict[str, Any] = dict(dj_database_url.parse(url))
    except ValueError as error:
        raise ImproperlyConfigured(
            "DATABASE_URL is no address of a database; write it like postgres://user@host/name"
        ) from error
    if database["ENGINE"].endswith("sqlite3"):
        return {**database, "OPTIONS": SQLITE_OPTIONS}
    # Under ASGI every request has a thread of its own, so that web processes share a pool. The
    # clusters fork, which a pool would not survive, and keep the connections that they have.
    if environment.flag("ORDERDESK_DB_POOL"):
        pool = {"min_size": 2, "max_size": 20, "timeout": 10}
        return {**database, "CONN_MAX_AGE": 0, "OPTIONS": {"pool": pool}}
    return {**database, "CONN_MAX_AGE": 600, "CONN_HEALTH_CHECKS": True}


DATABASES = {"default": _database()}
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}

# Live pages. In memory, each web process tails the journal itself, so Redis is never needed.
_REDIS = environment.redis()
CHANNEL_LAYERS: dict[str, dict[str, Any]] = {
    "default": (
        {"BACKEND": "channels_redis.core.RedisChannelLayer", "CONFIG": {"hosts": [_REDIS]}}
        if _REDIS
        else {"BACKEND": "channels.layers.InMemoryChannelLayer"}
    )
}

# Background tasks: two queues in the database, each with a cluster of its own.
Q_CLUSTER: dict[str, Any] = {
    "name": "orderdesk",
    "label": "Background tasks",
    "orm": "default",
    "ack_failures": True,  # a task carries no instruction, so a failed one is not worth repeating
    "max_attempts": 1,
    "catch_up": False,
    "timeout": 15,
    "retry": 30,
    "ALT_CLUSTERS": {
        # A lane runs until it is told to stop, one to a worker, which then starts afresh. The
        # lane task itself is enqueued without a time limit. The queue has room to spare: a full
        # one would keep the cluster from stopping when its workers have ended before it. So many
        # lanes are asked for, again and again, while a slow machine starts the first.
        "lanes": {
            "workers": ORDERDESK_LANES,
            "recycle": 1,
            "bulk": 1,
            "queue_limit": 10 * ORDERDESK_LANES + 16,
            "save_limit": -1,
            "scheduler": False,
        },
        "work": {"workers": 2, "recycle": 500, "bulk": 1, "queue_limit": 2, "save_limit": 250},
    },
}

# People
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "sesame.backends.ModelBackend",
]
SESAME_ONE_TIME = True
SESAME_MAX_AGE = timedelta(minutes=15)
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
AUTH_PASSWORD_VALIDATORS[1]["OPTIONS"] = {"min_length": 12}  # type: ignore[assignment]
LOGIN_URL = "/sign-in"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/sign-in"
SESSION_COOKIE_AGE = int(timedelta(hours=12).total_seconds())
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_HTTPONLY = True  # the pages carry the token themselves
CSRF_COOKIE_SAMESITE = "Lax"

# The browser's rules
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "connect-src": ["'self'"],  # WebSockets of the same origin included
        "font-src": ["'self'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
        "base-uri": ["'none'"],
    }
}
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SECURE_SSL_REDIRECT = HTTPS
SECURE_REDIRECT_EXEMPT = [r"^(healthz|readyz|metrics)$"]  # asked by machines on the inside
SECURE_HSTS_SECONDS = int(timedelta(days=365).total_seconds()) if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None

# Limits on what a request may carry: 500 decisions fit.
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024
DATA_UPLOAD_MAX_NUMBER_FIELDS = 200
DATA_UPLOAD_MAX_NUMBER_FILES = 0

# Static files
STATIC_URL = "/static/"
STATIC_ROOT = BASE_DIR / environment.text("ORDERDESK_STATIC", "staticfiles")
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": (
            "django.contrib.staticfiles.storage.StaticFilesStorage"
            if DEBUG
            else "whitenoise.storage.CompressedManifestStaticFilesStorage"
        )
    },
}
WHITENOISE_USE_FINDERS = DEBUG
WHITENOISE_AUTOREFRESH = DEBUG

# Time and language
LANGUAGE_CODE = "en"
USE_I18N = False
TIME_ZONE = "UTC"
USE_TZ = True

LOGGING = logs.configure(environment.choice("ORDERDESK_LOG_LEVEL", "INFO", logs.LEVELS))
