"""Reads JSON of any server without trusting it: an unexpected value is empty, or a failure."""

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime

import orjson

from proctor.values.plain import Json
from services.worker.engines.errors import ProviderFailed

# The largest that an int64 of a message holds.
_MAX_COUNT = 2**63 - 1
# More than any answer has, so that sums over a run fit a message.
MAX_TOKENS = 10**9
# Words of protocols are shorter; a server's text must not become a label or a column.
_MAX_WORD_CHARACTERS = 64
_ANSWER = "answer"
_NAMES_OF_ERRORS = ("error", "detail", "message", "msg", "Message")
# Half of a character, which no text in UTF-8 can hold.
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def read_document(body: bytes) -> Json:
    """A lone surrogate, or a byte that is no UTF-8, becomes U+FFFD: models end in the middle of a character.

    Numbers that JSON does not have (NaN, Infinity) are null. Of a list with an error, as Google sends it, the
    first item.
    """
    try:
        document = _loads(body)
    except (ValueError, RecursionError) as error:
        raise ProviderFailed("The server's answer is not valid JSON, perhaps cut off.") from error
    if isinstance(document, list) and (listed := objects_of(document)) and _is_error(listed[0]):
        return listed[0]
    if not isinstance(document, dict):
        raise ProviderFailed("The server's answer is not a JSON object.")
    return document


def _is_error(item: Json) -> bool:
    says = any(item.get(name) for name in _NAMES_OF_ERRORS)
    return says and not any(name in item for name in ("choices", "id"))


def _loads(body: bytes) -> object:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        # Servers in Python write some things that JSON does not have.
        text = body.decode("utf-8-sig", "replace")
        parsed = json.loads(text, strict=False, parse_constant=lambda _: None)
    return orjson.loads(_LONE_SURROGATE.sub("\ufffd", json.dumps(parsed, ensure_ascii=False)))


def count_of(value: object) -> int:
    """A whole number from 0 on that a message can hold; 0 for anything else."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    # In Python True is an int.
    if not isinstance(value, int) or isinstance(value, bool):
        return 0
    return value if 0 <= value <= _MAX_COUNT else 0


def tokens_of(value: object) -> int:
    """Reads like `count_of` the tokens of one answer."""
    # Five of these are read for each answer, and nearly all are absent or as they should be.
    if value is None:
        return 0
    count = value if type(value) is int and value >= 0 else count_of(value)
    return count if count <= MAX_TOKENS else 0


def moment_of(value: object) -> datetime | None:
    """Reads seconds since 1970 and ISO 8601 with a time zone; None for anything else."""
    try:
        if isinstance(value, str):
            time = datetime.fromisoformat(value)
            return time.astimezone(UTC) if time.tzinfo else None
        seconds = count_of(value)
        return datetime.fromtimestamp(seconds, UTC) if seconds else None
    except (ValueError, OverflowError, OSError):
        return None


def text_of(value: object) -> str:
    return value if isinstance(value, str) else ""


def word_of(value: object) -> str:
    """A word of the protocol, cut to a plausible length."""
    return text_of(value)[:_MAX_WORD_CHARACTERS]


def object_of(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def objects_of(value: object) -> list[Json]:
    """The objects in a list; its other items are left out."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def choice_schema(texts: Sequence[str]) -> Json:
    """The text is wrapped in an object, because OpenAI requires one."""
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
        raise ProviderFailed("The answer is not in the JSON format that was asked for.") from error
    if not isinstance(text, str):
        raise ProviderFailed("The answer in the JSON format that was asked for is not text.")
    return text
