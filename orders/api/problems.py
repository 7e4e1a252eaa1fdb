"""Errors as `application/problem+json` (RFC 9457), each with a stable `code`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import structlog
from django.core.exceptions import RequestDataTooBig
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError

log = structlog.get_logger(__name__)

CONTENT_TYPE = "application/problem+json"
_CODES = {
    400: "malformed",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    413: "too_large",
    500: "internal",
    503: "unavailable",
}


class ProblemError(Exception):
    """Ends a call with this answer. `members` are added to the body beside the standard ones."""

    def __init__(self, status: int, code: str, detail: str, **members: Any) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.members = members

    def as_json(self) -> dict[str, Any]:
        return {
            "type": f"urn:orderdesk:problem:{self.code}",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
            "code": self.code,
            **self.members,
        }

    def as_response(self) -> HttpResponse:
        response = HttpResponse(
            json.dumps(self.as_json()), status=self.status, content_type=CONTENT_TYPE
        )
        if self.status == 401:
            response["WWW-Authenticate"] = 'Bearer realm="orderdesk"'
        if self.status == 503:
            response["Retry-After"] = "1"
        return response


def invalid(field: str, message: str) -> ProblemError:
    """422 for one field."""
    return invalid_fields([{"field": field, "message": message}])


def invalid_fields(errors: Sequence[dict[str, str]]) -> ProblemError:
    """422 for all fields that are wrong; the first one is named in `field` and `detail`."""
    first = errors[0]
    detail = f"{first['field']}: {first['message']}"
    return ProblemError(422, "invalid", detail, field=first["field"], errors=list(errors))


def not_found(what: str) -> ProblemError:
    return ProblemError(404, "not_found", what)


def of_status(status: int, detail: str) -> ProblemError:
    return ProblemError(status, _CODES.get(status, "error"), detail)


def install(api: NinjaAPI) -> None:
    """Turn everything that a call may raise into a problem."""
    for kind, handler in (
        (ProblemError, _problem),
        (AuthenticationError, _unauthorized),
        (HttpError, _http_error),
        (Http404, _http_404),
        (ValidationError, _validation_error),
        (RequestDataTooBig, _too_large),
        (OperationalError, _unavailable),
        (InterfaceError, _unavailable),
        (Exception, _internal),
    ):
        api.add_exception_handler(kind, handler)


def _problem(request: HttpRequest, error: Any) -> HttpResponse:
    assert isinstance(error, ProblemError)
    return error.as_response()


def _unauthorized(request: HttpRequest, error: Any) -> HttpResponse:
    detail = (
        "needs the header `Authorization: Bearer TOKEN`; `manage.py api_token create` makes one"
    )
    if request.headers.get("Authorization"):
        detail = "the token is not known, or was revoked; `manage.py api_token list` shows all"
    return of_status(401, detail).as_response()


def _http_error(request: HttpRequest, error: Any) -> HttpResponse:
    return of_status(error.status_code, str(error)).as_response()


def _http_404(request: HttpRequest, error: Any) -> HttpResponse:
    return of_status(404, f"there is nothing at {request.path}").as_response()


def _validation_error(request: HttpRequest, error: Any) -> HttpResponse:
    """A parameter in the address, or a small body, that the signature does not take."""
    return invalid_fields([_plain_error(item) for item in error.errors]).as_response()


def _plain_error(item: dict[str, Any]) -> dict[str, str]:
    places = ("query", "path", "body", "header")
    names = [part for part in item["loc"] if isinstance(part, str) and part not in places]
    return {"field": names[-1] if names else "body", "message": clean(item["msg"])}


def clean(message: str) -> str:
    """A validator's words without the library's lead-in."""
    return message.removeprefix("Value error, ")


def _too_large(request: HttpRequest, error: Any) -> HttpResponse:
    return of_status(413, "the body is too large; send fewer decisions at a time").as_response()


def _unavailable(request: HttpRequest, error: Any) -> HttpResponse:
    log.warning("api_database_unavailable", path=request.path, error=str(error))
    detail = (
        "the database cannot be reached, so it is not known whether this was recorded; "
        "send the same again: the same decision is never admitted twice"
    )
    return of_status(503, detail).as_response()


def _internal(request: HttpRequest, error: Any) -> HttpResponse:
    log.error("api_failed", path=request.path, method=request.method, exc_info=error)
    detail = "the desk failed at this; its log says why. To send the same again is safe"
    return of_status(500, detail).as_response()
