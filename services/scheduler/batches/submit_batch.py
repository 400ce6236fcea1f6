"""Makes a batch: of a valid file with a run over it, of any other as one that has failed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from services.common.checked_fields import refuse
from services.common.clock import Clock
from services.common.errors import DomainError, ErrorKind, InvalidParameter
from services.common.requests.request_fields import user_problem
from services.scheduler.batches.postgres import PostgresBatches
from services.scheduler.batches.stored_batch import (
    ADVICE,
    Batch,
    BatchError,
    BatchId,
    BatchOrder,
    run_id_of,
    window_of,
)
from services.scheduler.limits.ports import LimitStore
from services.scheduler.runs.lifecycle.ports import RunControls
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.lifecycle.submit_run import Submission, SubmitRun
from services.scheduler.runs.orders.run_order import RunOrder
from services.scheduler.uploads.checking.row_fields import ENDPOINTS
from services.scheduler.uploads.dataset import RowFacts
from services.scheduler.uploads.errors import DatasetNotFound, FaultKind, FileNotFound
from services.scheduler.uploads.faults import DatasetFault
from services.scheduler.uploads.postgres import PostgresFiles
from services.scheduler.uploads.stored_file import FilePurpose, StoredFile, expiry_problem
from services.scheduler.workers.model_names import model_named

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
NO_MODEL = BatchError(
    "missing_required_parameter", "No line of the file names a model. Name one in each.", "body.model"
)
# The three limits are those of the OpenAI protocol, whose clients rely on them.
MAX_METADATA_PAIRS = 16
MAX_KEY_CHARACTERS = 64
MAX_VALUE_CHARACTERS = 512


class BatchRequestTaken(DomainError, kind=ErrorKind.CONFLICT, reason="REQUEST_ID_TAKEN"):
    """This request_id (Idempotency-Key) stands for another batch, {batch_id}. Give each an id of its own."""


def errors_of_file(file: StoredFile, endpoint: str) -> Sequence[BatchError]:
    """The first faults of its lines; or that they are for another endpoint."""
    if file.content is None:
        return tuple(_error_of_fault(fault) for fault in file.faults.first)
    asked = file.content.facts.endpoint
    if asked == endpoint:
        return ()
    sentence = f"The lines of the file ask {asked}, but the batch is for {endpoint}."
    return (BatchError("url_mismatch", sentence, "url"),)


def no_such_model(name: str) -> BatchError:
    sentence = f'No pool serves the model "{name}" of the lines. List the models to see those there are.'
    return BatchError("model_not_found", sentence, "body.model")


def error_of_refusal(error: DomainError) -> BatchError:
    """The error of an order that cannot become a run."""
    return BatchError(_REASONS.get(error.reason, error.reason.lower()), error.message)


def _error_of_fault(fault: DatasetFault) -> BatchError:
    return BatchError(_CODES[fault.kind], fault.problem, fault.field, fault.line)


@dataclass(frozen=True, slots=True)
class BatchSubmission:
    """`request_id` is the caller's own, so that a repeated call finds the batch of the first; "" for none."""

    batch_id: BatchId
    order: BatchOrder
    user: str
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class SubmitBatch:
    batches: PostgresBatches
    files: PostgresFiles
    submit_run: SubmitRun
    limits: LimitStore
    controls: RunControls
    clock: Clock

    async def submit(self, submission: BatchSubmission) -> Batch:
        _check(submission)
        if submission.request_id:
            # First: a repeated call succeeds although its file was deleted or has expired meanwhile.
            known = await self.batches.ordered(submission.request_id, submission.user)
            if known is not None:
                return _same_order(known, submission)
        file = await self.files.get(submission.order.input_file_id)
        if file.has_expired(self.clock.now()):
            raise FileNotFound(file_id=file.file_id)
        if file.purpose is not FilePurpose.BATCH:
            sentence = (
                f"The file {file.file_id} is of purpose {file.purpose}; a batch reads files of purpose batch."
            )
            raise InvalidParameter(field="input_file_id", sentence=sentence)
        batch = await self._judged(submission, file)
        try:
            stored = await self.batches.add(batch, submission.request_id)
        except DatasetNotFound as error:
            # Deleted since it was looked up.
            raise FileNotFound(file_id=file.file_id) from error
        if stored.run is not None:
            await self.controls.announce(stored.run)
        return _same_order(stored, submission)

    async def _judged(self, submission: BatchSubmission, file: StoredFile) -> Batch:
        batch_id, order, user = submission.batch_id, submission.order, submission.user
        batch = Batch(batch_id, user, order, self.clock.now(), project_id=file.project_id)
        errors = errors_of_file(file, order.endpoint)
        if errors or file.content is None:
            return replace(batch, errors=errors)
        facts = file.content.facts
        if not facts.models:
            return replace(batch, errors=(NO_MODEL,))
        model = model_named(facts.models[0], self.submit_run.pools, self.submit_run.aliases)
        if model is None:
            return replace(batch, errors=(no_such_model(facts.models[0]),))
        try:
            run = await self._run(submission, model, file, facts)
        except DomainError as error:
            # An order that can never run makes a failed batch, as in the protocol. An outage is raised.
            if error.kind not in (ErrorKind.INVALID, ErrorKind.CONFLICT):
                raise
            return replace(batch, errors=(error_of_refusal(error),))
        return replace(batch, created_at=run.created_at, total=facts.row_count, run=run)

    async def _run(self, submission: BatchSubmission, model: str, file: StoredFile, facts: RowFacts) -> Run:
        window = window_of(submission.order.completion_window)
        limits = await self.limits.limits()
        order = RunOrder(
            suite="",
            model=model,
            dataset_id=file.file_id,
            line_models=facts.models,
            project_id=file.project_id,
            priority=limits.background_priority(submission.user),
            completion_window_seconds=int(window.total_seconds()) if window else None,
        )
        return await self.submit_run.prepare(
            Submission(run_id_of(submission.batch_id), order, submission.user)
        )


def _same_order(stored: Batch, submission: BatchSubmission) -> Batch:
    if stored.order != submission.order:
        raise BatchRequestTaken(request_id=submission.request_id, batch_id=stored.batch_id)
    return stored


def _check(submission: BatchSubmission) -> None:
    order = submission.order
    refuse(user_problem(submission.user))
    if order.endpoint not in ENDPOINTS:
        allowed = " or ".join(ENDPOINTS)
        sentence = f"endpoint is {order.endpoint!a}, but must be {allowed}."
        raise InvalidParameter(field="endpoint", sentence=sentence)
    if window_of(order.completion_window) is None:
        sentence = f"completion_window is {order.completion_window[:40]!a}, but {ADVICE}."
        raise InvalidParameter(field="completion_window", sentence=sentence)
    sentence = _metadata_problem(order.metadata)
    if sentence:
        raise InvalidParameter(field="metadata", sentence=sentence)
    sentence = expiry_problem("output_expires_after_seconds", order.output_expires_after_seconds)
    if sentence:
        raise InvalidParameter(field="output_expires_after_seconds", sentence=sentence)


def _metadata_problem(metadata: Mapping[str, str]) -> str:
    if len(metadata) > MAX_METADATA_PAIRS:
        return f"metadata has {len(metadata)} pairs, but may have at most {MAX_METADATA_PAIRS}."
    for key, value in metadata.items():
        if not 0 < len(key) <= MAX_KEY_CHARACTERS:
            return f"A key of metadata has {len(key)} characters, but must have 1 to {MAX_KEY_CHARACTERS}."
        if len(value) > MAX_VALUE_CHARACTERS:
            named = f"The value of {key!a} in metadata"
            return f"{named} has {len(value)} characters, but may have at most {MAX_VALUE_CHARACTERS}."
        if "\0" in key or "\0" in value:
            return "metadata holds a NUL character. Leave it out."
    return ""
