"""Admits what was sent, one decision or a list of them, each exactly once."""

from __future__ import annotations

from typing import Any

from orders import intake
from orders.api import access, present
from orders.api.decisions import DecisionIn, parse
from orders.api.problems import ProblemError, invalid
from orders.intake import Decision, DecisionError
from orders.journal import Admission
from orders.machine import State
from orders.models import ApiToken


def submit_one(token: ApiToken, data: Any, header: str | None) -> tuple[int, dict[str, Any], bool]:
    """Status, body, and whether it was admitted before. Raises ProblemError."""
    answer = _admit(token, [_decision(token, data, header)])[0]
    if isinstance(answer, ProblemError):
        raise answer
    return *_recorded(answer), not answer.created


def submit_list(token: ApiToken, data: list[Any], header: str | None) -> list[dict[str, Any]]:
    """One item for each decision, in order. Raises ProblemError for the list as a whole."""
    if header is not None:
        raise invalid("Idempotency-Key", "is for one decision; in a list each has its own `key`")
    if len(data) > intake.MAX_LIST:
        raise invalid("list", f"at most {intake.MAX_LIST} decisions, got {len(data)}")
    prepared = [_prepared(token, item) for item in data]
    answers = iter(_admit(token, [item for item in prepared if isinstance(item, Decision)]))
    return [_item(next(answers) if isinstance(item, Decision) else item) for item in prepared]


def _prepared(token: ApiToken, data: Any) -> Decision | ProblemError:
    try:
        return _decision(token, data, None)
    except ProblemError as problem:
        return problem


def _decision(token: ApiToken, data: Any, header: str | None) -> Decision:
    """Raises ProblemError: 422 for what cannot be read, 403 for what the token is not for."""
    form = parse(DecisionIn, data)
    key = form.key or ""
    if header is not None:
        if key and key != header:
            raise invalid("key", f"is {key!r}, the header Idempotency-Key is {header!r}; choose")
        key = header
    access.check_decision(token, form.account, form.strategy)
    return form.decision(key)


def _admit(token: ApiToken, decisions: list[Decision]) -> list[Admission | ProblemError]:
    return [
        _problem(answer) if isinstance(answer, DecisionError) else answer
        for answer in intake.submit_many(decisions, actor=access.actor(token))
    ]


def _problem(error: DecisionError) -> ProblemError:
    errors = [{"field": error.field, "message": error.message}]
    return ProblemError(422, error.code, str(error), field=error.field, errors=errors)


def _recorded(admission: Admission) -> tuple[int, dict[str, Any]]:
    intent = admission.intent
    if intent.admitted_as == State.DENIED:
        return 409, present.denied(intent)
    return 201, present.admitted(intent)


def _item(answer: Admission | ProblemError) -> dict[str, Any]:
    if isinstance(answer, ProblemError):
        return {"status": answer.status, "replayed": False, "problem": answer.as_json()}
    status, intent = _recorded(answer)
    return {"status": status, "replayed": not answer.created, "intent": intent}
