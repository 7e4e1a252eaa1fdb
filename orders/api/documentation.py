"""Parts of the OpenAPI document that the signatures cannot tell."""

from __future__ import annotations

from typing import Any

from ninja import Schema

from orders.api.schemas import ProblemOut

PROBLEM = "application/problem+json"


def problems(*statuses: int) -> dict[int, Any]:
    """The errors that a call may answer with, beside those that any call may."""
    return dict.fromkeys((401, 403, *statuses), ProblemOut)


def body(form: type[Schema], *, many: bool = False, required: bool = True) -> dict[str, Any]:
    """A request body that the call reads by itself, exactly."""
    one = form.model_json_schema()
    example = {
        name: field.examples[0] for name, field in form.model_fields.items() if field.examples
    }
    schema = {"oneOf": [one, {"type": "array", "items": one, "maxItems": 500}]} if many else one
    examples: dict[str, Any] = {"one": {"value": example}}
    if many:
        examples["list"] = {"value": [example, {**example, "key": f"{example['key']}-b"}]}
    content = {"application/json": {"schema": schema, "examples": examples}}
    return {"requestBody": {"required": required, "content": content}}


IDEMPOTENCY_KEY = {
    "in": "header",
    "name": "Idempotency-Key",
    "required": False,
    "schema": {"type": "string", "maxLength": 200},
    "description": "the same as `key` in the body",
}
LAST_EVENT_ID = {
    "in": "header",
    "name": "Last-Event-ID",
    "required": False,
    "schema": {"type": "integer"},
    "description": "where a stream goes on, instead of `after`",
}
REPLAYED = {
    "Idempotent-Replayed": {
        "description": "true where the decision was admitted before",
        "schema": {"type": "string", "enum": ["true"]},
    }
}


def mark_problems(document: dict[str, Any]) -> dict[str, Any]:
    """Give every error its own content type, and let every call fail."""
    shape = {"schema": {"$ref": "#/components/schemas/ProblemOut"}}
    for operations in document["paths"].values():
        for operation in operations.values():
            answers = operation["responses"]
            for status, answer in answers.items():
                content = answer.get("content", {}).get("application/json", {})
                if int(status) >= 400 and content.get("schema") == shape["schema"]:
                    answer["content"] = {PROBLEM: shape}
            answers.setdefault(
                "default", {"description": "any other error", "content": {PROBLEM: shape}}
            )
    return document
