"""One of given texts as an answer in JSON: the schema that asks for it, and the text read back."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from services.worker import engine
from services.worker.json_answers import Json

_ANSWER = "answer"


def choice_schema(texts: Sequence[str]) -> Json:
    """An answer may only be an object at OpenAI itself, so the text stands in one."""
    return {
        "type": "object",
        "properties": {_ANSWER: {"type": "string", "enum": list(texts)}},
        "required": [_ANSWER],
        "additionalProperties": False,
    }


def read_choice(answer: str) -> str:
    try:
        text = orjson.loads(answer)[_ANSWER]
    except (orjson.JSONDecodeError, LookupError, TypeError) as error:
        raise engine.ProviderFailed("The answer is not in the JSON format that was asked for.") from error
    if not isinstance(text, str):
        raise engine.ProviderFailed("The answer in the JSON format that was asked for is no text.")
    return text
