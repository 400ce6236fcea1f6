"""A batch is made: of a sound file with a run over it, of any other as one that has failed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.common.clock import Clock
from services.common.errors import DomainError, ErrorKind
from services.scheduler.batches.completion_window import ADVICE, window_of
from services.scheduler.batches.errors import BatchRequestTaken
from services.scheduler.batches.ports import BatchStore
from services.scheduler.batches.problems import (
    NO_MODEL,
    no_such_model,
    problem_of_refusal,
    problems_of_file,
)
from services.scheduler.batches.stored_batch import Batch, BatchId, BatchOrder, run_id_of
from services.scheduler.datasets.checking.row_fields import ENDPOINTS
from services.scheduler.datasets.dataset_errors import DatasetNotFound
from services.scheduler.errors import InvalidParameter
from services.scheduler.files.errors import FileNotFound
from services.scheduler.files.ports import FileStore
from services.scheduler.files.stored_file import FilePurpose, StoredFile, expiry_problem
from services.scheduler.pools.model_names import model_named
from services.scheduler.ports import LimitStore, RunControls
from services.scheduler.runs.run import Run
from services.scheduler.runs.run_order import Priority, RunOrder
from services.scheduler.runs.submit_run import Submission, SubmitRun
from services.scheduler.runs.user_name import user_problem

MAX_METADATA_PAIRS = 16
MAX_KEY_LETTERS = 64
MAX_VALUE_LETTERS = 512


@dataclass(frozen=True, slots=True)
class BatchSubmission:
    """`request_id` is the caller's own, so that a repeated call finds the batch of the first; "" for none."""

    batch_id: BatchId
    order: BatchOrder
    user: str
    request_id: str = ""


@dataclass(frozen=True)
class SubmitBatch:
    batches: BatchStore
    files: FileStore
    submitting: SubmitRun
    limits: LimitStore
    controls: RunControls
    clock: Clock

    async def submit(self, submission: BatchSubmission) -> Batch:
        _check(submission)
        if submission.request_id:
            known = await self.batches.ordered(submission.request_id, submission.user)
            if known is not None:
                return _same_order(known, submission)
        file = await self.files.get(submission.order.input_file_id)
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
            await self.controls.tell(stored.run)
        return _same_order(stored, submission)

    async def _judged(self, submission: BatchSubmission, file: StoredFile) -> Batch:
        batch_id, order, user = submission.batch_id, submission.order, submission.user
        now = self.clock.now()
        problems = problems_of_file(file, order.endpoint)
        if problems or file.content is None:
            return Batch(batch_id, user, order, now, problems=problems)
        facts = file.content.facts
        if not facts.models:
            return Batch(batch_id, user, order, now, problems=(NO_MODEL,))
        model = model_named(facts.models[0], self.submitting.pools, self.submitting.aliases)
        if model is None:
            return Batch(batch_id, user, order, now, problems=(no_such_model(facts.models[0]),))
        try:
            run = await self._run(submission, model, facts.models)
        except DomainError as error:
            if error.kind not in (ErrorKind.INVALID, ErrorKind.CONFLICT):
                raise
            return Batch(batch_id, user, order, now, problems=(problem_of_refusal(error),))
        return Batch(batch_id, user, order, run.created_at, facts.row_count, run)

    async def _run(self, submission: BatchSubmission, model: str, line_models: Sequence[str]) -> Run:
        window = window_of(submission.order.completion_window)
        limits = await self.limits.limits()
        order = RunOrder(
            suite="",
            model=model,
            dataset_id=submission.order.input_file_id,
            line_models=tuple(line_models),
            priority=max(Priority.NORMAL, limits.highest_priority(submission.user)),
            completion_window_seconds=int(window.total_seconds()) if window else None,
        )
        return await self.submitting.settled(
            Submission(run_id_of(submission.batch_id), order, submission.user)
        )


def _same_order(stored: Batch, submission: BatchSubmission) -> Batch:
    if stored.order != submission.order:
        raise BatchRequestTaken(request_id=submission.request_id, batch_id=stored.batch_id)
    return stored


def _check(submission: BatchSubmission) -> None:
    order = submission.order
    problem = user_problem(submission.user)
    if problem:
        raise InvalidParameter(field=problem.field, sentence=problem.sentence)
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
        if not 0 < len(key) <= MAX_KEY_LETTERS:
            return f"A key of metadata has {len(key)} characters, but must have 1 to {MAX_KEY_LETTERS}."
        if len(value) > MAX_VALUE_LETTERS:
            named = f"The value of {key!a} in metadata"
            return f"{named} has {len(value)} characters, but may have at most {MAX_VALUE_LETTERS}."
        if "\0" in key or "\0" in value:
            return "metadata holds a NUL character. Leave it out."
    return ""
