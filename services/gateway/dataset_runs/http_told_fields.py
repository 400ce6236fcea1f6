"""What results refuse of a field, in the word that the caller wrote for it."""

import re

from services.common.errors import RemoteError

_WORDS = {
    "filter.row_id": "id",
    "filter.text": "text",
    "filter.metric": "metric",
    "min_characters": "min_length",
    "max_characters": "max_length",
    "run_ids": "ids",
    "answers.row_id": "custom_id",
    "row_id": "custom_id",
    "page_size": "limit",
}
_FIELD = re.compile("|".join(rf"\b{re.escape(field)}\b" for field in _WORDS))


def in_words_of_rest(error: RemoteError) -> RemoteError:
    """The same error; nothing of one that is about no field is changed."""
    if error.reason != "INVALID_PARAMETER" or "field" not in error.facts:
        return error
    told = {name: _FIELD.sub(_word, str(value)) for name, value in error.facts.items()}
    return RemoteError(error.kind, error.reason, _FIELD.sub(_word, error.message), told)


def _word(found: re.Match[str]) -> str:
    return _WORDS[found[0]]
