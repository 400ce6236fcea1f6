"""Compares answers of the gateway with its description: status, media type, and what is in the body."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jsonschema import Draft202012Validator

# They have no description: the description itself, the page that shows it, and the way to that.
_UNDESCRIBED = re.compile(r"/|/docs(/.*)?|/openapi\.json")


@dataclass(frozen=True, slots=True)
class Answer:
    method: str
    path: str
    status: int
    # Without parameters; empty where there is no body.
    media_type: str
    body: Any


class Description:
    """`document` is what /openapi.json returns."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._components = document["components"]
        # A path that is written out comes before one with a parameter.
        paths = sorted(document["paths"].items(), key=lambda item: item[0].count("{"))
        self._paths = [(_pattern(path), operations) for path, operations in paths]

    def check(self, answer: Answer) -> None:
        """Fails for an answer that is not described. An unknown path is 404, an unknown method 405."""
        operations = self._operations(answer.path)
        if operations is None:
            assert answer.status in (401, 403, 404, 405, 421) or _UNDESCRIBED.fullmatch(answer.path), answer
            return
        operation = operations.get("get" if answer.method == "HEAD" else answer.method.lower())
        if operation is None:
            assert answer.status in (401, 403, 405, 421), answer
            return
        described = operation["responses"].get(str(answer.status))
        assert described is not None, f"{answer.method} {answer.path} answers {answer.status} undescribed"
        content = described.get("content", {})
        if not answer.media_type:
            return
        assert answer.media_type in content, f"{answer.method} {answer.path} answers {answer.media_type}"
        schema = content[answer.media_type].get("schema")
        if schema and answer.method != "HEAD" and answer.media_type.endswith("json"):
            Draft202012Validator({**schema, "components": self._components}).validate(answer.body)

    def _operations(self, path: str) -> Mapping[str, Any] | None:
        return next((operations for pattern, operations in self._paths if pattern.fullmatch(path)), None)


def _pattern(path: str) -> re.Pattern[str]:
    """Names of models contain slashes."""
    parts = re.split(r"(\{\w+\})", path)
    kinds = {"{model}": ".+"}
    return re.compile(
        "".join(kinds.get(part, "[^/]+") if part.startswith("{") else re.escape(part) for part in parts)
    )
