"""Errors in the OpenAPI description, and answers to HEAD."""

from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from services.gateway.http.error_handlers import MEDIA_TYPE
from services.gateway.http.paths import OPENAI, PROBES

_JSON = "application/json"
_PROBLEM = {"$ref": "#/components/schemas/ProblemDetails"}
_OPENAI_ERROR = {"$ref": "#/components/schemas/ErrorBody"}


def describe_errors(app: FastAPI) -> None:
    """FastAPI describes errors of its own, which the handlers of the gateway replace."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        # FastAPI keeps the document that it returned: the second call must not change it again.
        is_new = not app.openapi_schema
        document = plain()
        for path, operations in document["paths"].items() if is_new else ():
            for operation in operations.values():
                _describe_anywhere(path, operation)
                _describe(operation["responses"], is_openai=path.startswith(f"{OPENAI}/"))
                for parameter in operation.get("parameters", ()):
                    parameter["schema"] = _without_null(parameter["schema"])
        return document

    app.openapi = openapi  # type: ignore[method-assign]  # the way that FastAPI documents


def _describe_anywhere(path: str, operation: dict[str, Any]) -> None:
    """Answers that come before a handler is called: from elsewhere, without a valid name, or too large."""
    if path in PROBES:
        return
    is_openai = path.startswith(f"{OPENAI}/")
    statuses = {400, 401, 403, 421, 429, 500, 503}
    if "requestBody" in operation:
        statuses |= {408, 413}
    if any(each["in"] == "query" for each in operation.get("parameters", ())):
        statuses.add(414)
    schema = _OPENAI_ERROR if is_openai else _PROBLEM
    for status in sorted(statuses):
        content = {_JSON: {"schema": schema}}
        described = {"description": HTTPStatus(status).phrase, "content": content}
        operation["responses"].setdefault(str(status), described)


def _describe(responses: dict[str, Any], *, is_openai: bool) -> None:
    """Describes errors: below /v1 a malformed request has 400; elsewhere errors are problem documents."""
    if is_openai:
        if responses.pop("422", None):
            content = {_JSON: {"schema": _OPENAI_ERROR}}
            responses.setdefault("400", {"description": "Bad Request", "content": content})
        return
    if "422" in responses:
        responses["422"] = {
            "description": "Unprocessable Content",
            "content": {_JSON: {"schema": _PROBLEM}},
        }
    for response in responses.values():
        content = response.get("content", {})
        if content.get(_JSON, {}).get("schema") == _PROBLEM:
            content[MEDIA_TYPE] = content.pop(_JSON)


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """A parameter can be left out, and cannot be null."""
    kinds = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    if len(kinds) == 1:
        return {**kinds[0], **{name: value for name, value in schema.items() if name != "anyOf"}}
    return schema


class HeadRequests:
    """Answers HEAD as GET without its body: handlers stop when the client seems to have gone."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        is_answered = False

        async def receive_until_answered() -> Message:
            return {"type": "http.disconnect"} if is_answered else await receive()

        async def send_head(message: Message) -> None:
            nonlocal is_answered
            if message["type"] == "http.response.start":
                await send(message)
            elif not is_answered:
                is_answered = True
                await send({"type": "http.response.body", "body": b""})

        await self._app({**scope, "method": "GET"}, receive_until_answered, send_head)
