"""What services refuse, in the words of the door that was asked at: ids of runs, and the place in a list.
What results refuse of a field, in the word that the caller wrote for it.
"""

import re
import uuid
from collections.abc import Callable

from services.common.errors import DomainError, RemoteError
from services.gateway.errors.run_ids import benchmark_id
from services.gateway.paths import ADMIN, BATCHES, OPENAI

# Facts that name runs; one that has a UUID of another kind is left as it is.
_RUN_FACTS = ("run_id", "runs", "first", "second")
_UUID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")


def in_words_of_door(error: DomainError, path: str) -> tuple[str, dict[str, str]]:
    """The sentence and the facts, for whoever asked at this path."""
    facts = {name: str(value) for name, value in error.facts.items()}
    if error.reason == "INVALID_PAGE_TOKEN":
        return error.message.replace("page_token", "cursor"), facts
    shown = _id_at(path)
    # A key may stand for a run over a suite, which has no other id than its UUID.
    if shown is None or facts.get("dataset_id") == "":
        return error.message, facts
    runs = {run_id for name in _RUN_FACTS for run_id in _UUID.findall(facts.get(name, ""))}

    def told(text: str) -> str:
        return _UUID.sub(lambda found: shown(found[0]) if found[0] in runs else found[0], text)

    return told(error.message), {name: told(fact) for name, fact in facts.items()}


def _id_at(path: str) -> Callable[[str], str] | None:
    """What makes the id that clients have for a run out of its UUID, where they have one."""
    if f"{path}/".startswith(f"{BATCHES}/"):
        return _batch_id
    is_of_datasets = path.startswith((f"{ADMIN}/", f"{OPENAI}/"))
    return benchmark_id if is_of_datasets else None


def _batch_id(run_id: str) -> str:
    return f"batch_{uuid.UUID(run_id).hex}"


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
