"""The tools that an answer calls, as the provider's body has them."""

from typing import Any

import orjson


def tool_calls(body_json: str) -> list[Any]:
    """Empty where the body is no answer of the OpenAI protocol."""
    try:
        calls = orjson.loads(body_json)["choices"][0]["message"]["tool_calls"]
    except (orjson.JSONDecodeError, LookupError, TypeError):
        return []
    return calls if isinstance(calls, list) else []


def called(body_json: str) -> str:
    """What is called with which arguments; calls have other ids each time."""
    functions = [call.get("function") for call in tool_calls(body_json) if isinstance(call, dict)]
    return orjson.dumps(functions, option=orjson.OPT_SORT_KEYS).decode() if functions else ""
