"""Why a batch fails, in the codes that clients of the protocol know."""

from collections.abc import Mapping, Sequence

from services.common.errors import DomainError
from services.scheduler.batches.stored_batch import BatchProblem
from services.scheduler.datasets.checking.faults import DatasetFault, FaultKind
from services.scheduler.files.stored_file import StoredFile

_INVALID = "invalid_request"
_CODES: Mapping[FaultKind, str] = {
    FaultKind.INVALID: _INVALID,
    FaultKind.UNREADABLE: "invalid_json_line",
    FaultKind.MISSING: "missing_required_parameter",
    FaultKind.DUPLICATE: "duplicate_custom_id",
    FaultKind.OTHER_URL: "url_mismatch",
    FaultKind.MODEL_MISMATCH: "model_mismatch",
    FaultKind.EMPTY: "empty_file",
    FaultKind.TOO_MANY: "too_many_tasks",
}
_REASONS: Mapping[str, str] = {
    "UNKNOWN_MODEL": "model_not_found",
    "UNKNOWN_PROVIDER": "model_not_found",
    "MODEL_MISMATCH": "model_mismatch",
}


def problems_of_file(file: StoredFile, endpoint: str) -> Sequence[BatchProblem]:
    """The first faults of its lines; or that they are for another endpoint."""
    if file.content is None:
        return tuple(_problem_of_fault(fault) for fault in file.faults.first)
    asked = file.content.facts.endpoint
    if asked == endpoint:
        return ()
    sentence = f"The lines of the file ask {asked}, but the batch is for {endpoint}."
    return (BatchProblem("url_mismatch", sentence, "url"),)


def no_such_model(name: str) -> BatchProblem:
    sentence = f'No pool serves the model "{name}" of the lines. List the models to see those there are.'
    return BatchProblem("model_not_found", sentence, "body.model")


NO_MODEL = BatchProblem(
    "missing_required_parameter", "No line of the file names a model. Name one in each.", "body.model"
)


def problem_of_refusal(error: DomainError) -> BatchProblem:
    """Of an order that cannot become a run."""
    return BatchProblem(_REASONS.get(error.reason, error.reason.lower()), error.message)


def _problem_of_fault(fault: DatasetFault) -> BatchProblem:
    return BatchProblem(_CODES[fault.kind], fault.problem, fault.field, fault.line)
