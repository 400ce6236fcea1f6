"""Translates to the API that was called: ids of runs, and the errors of services with their ids and names."""

import re
import uuid
from collections.abc import Callable

from services.common.errors import DomainError, RemoteError
from services.gateway.http.errors import DatasetRunNotFound
from services.gateway.http.paths import ADMIN, BATCHES, OPENAI

# The reason of a page token that a list did not give.
NO_SUCH_PAGE = "INVALID_PAGE_TOKEN"
_PREFIX = "bm_"
_FORM = re.compile(f"{_PREFIX}[0-9a-f]{{32}}")
# Facts that hold ids of runs. UUIDs of other things stay as they are.
_RUN_FACTS = ("run_id", "runs", "first", "second")
_UUID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
# Fields of messages, and the parameters of the REST API that set them.
_PARAMETERS = {
    "filter.row_id": "id",
    "filter.text": "text",
    "filter.metric": "metric",
    "is_golden": "golden",
    "is_marked_wrong": "wrong",
    "run_ids": "ids",
    "answers.row_id": "custom_id",
    "row_id": "custom_id",
    "page_size": "limit",
}
_FIELD = re.compile("|".join(rf"\b{re.escape(field)}\b" for field in _PARAMETERS))


def benchmark_id(run_id: str) -> str:
    return f"{_PREFIX}{uuid.UUID(run_id).hex}"


def batch_id(run_id: str) -> str:
    return f"batch_{uuid.UUID(run_id).hex}"


def run_id_of(given: str) -> str:
    """The UUID of a "bm_…". Raises `DatasetRunNotFound` for any other form."""
    if not _FORM.fullmatch(given):
        raise DatasetRunNotFound(benchmark_id=given)
    return str(uuid.UUID(given.removeprefix(_PREFIX)))


def with_client_ids(error: DomainError, path: str) -> tuple[str, dict[str, str]]:
    """The message and facts of an error, with the ids that runs have in the API of this path."""
    facts = {name: str(value) for name, value in error.facts.items()}
    if error.reason == NO_SUCH_PAGE:
        return error.message.replace("page_token", "cursor"), facts
    client_id = _client_id(path)
    # An idempotency key may belong to a run over a suite, whose id is its UUID.
    if client_id is None or facts.get("dataset_id") == "":
        return error.message, facts
    runs = {run_id for name in _RUN_FACTS for run_id in _UUID.findall(facts.get(name, ""))}

    def translated(text: str) -> str:
        return _UUID.sub(lambda found: client_id(found[0]) if found[0] in runs else found[0], text)

    return translated(error.message), {name: translated(fact) for name, fact in facts.items()}


def with_parameter_names(error: RemoteError) -> RemoteError:
    """The error with names of parameters in the place of names of fields; other errors stay as they are."""
    if error.reason != "INVALID_PARAMETER" or "field" not in error.facts:
        return error
    facts = {name: _with_parameters(str(value)) for name, value in error.facts.items()}
    return RemoteError(error.kind, error.reason, _with_parameters(error.message), facts)


def _client_id(path: str) -> Callable[[str], str] | None:
    """Converts the UUID of a run to the id that clients use; None where clients use the UUID."""
    if f"{path}/".startswith(f"{BATCHES}/"):
        return batch_id
    return benchmark_id if path.startswith((f"{ADMIN}/", f"{OPENAI}/")) else None


def _with_parameters(text: str) -> str:
    return _FIELD.sub(lambda found: _PARAMETERS[found[0]], text)
