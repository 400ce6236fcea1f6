"""Errors of uploads, each as one sentence with what to do, and the faults of their lines."""

from enum import StrEnum

from services.common.errors import DomainError, ErrorKind


class DatasetNotFound(DomainError, kind=ErrorKind.NOT_FOUND, reason="DATASET_NOT_FOUND"):
    """There is no data set {dataset_id}. List them to see those there are."""


class DatasetInUse(DomainError, kind=ErrorKind.CONFLICT, reason="DATASET_IN_USE"):
    """Run {run_id} uses the data set {dataset_id}, so it stays. Wait for the run, or cancel it first."""


class DatasetInUseElsewhere(DatasetInUse, reason="DATASET_IN_USE"):
    """A run of another project uses the data set {dataset_id}, so it stays until that run ends."""


class DatasetTooLarge(DomainError, kind=ErrorKind.INVALID, reason="DATASET_TOO_LARGE"):
    """The file has more than {limit} {unit}{when}, which is the limit. Split it."""


class TooManyUploads(DomainError, kind=ErrorKind.EXHAUSTED, reason="TOO_MANY_UPLOADS"):
    """{whose} limit of {limit} uploads at a time is reached. Try again in {retry_after_seconds} s."""


class UploadRequestTaken(DomainError, kind=ErrorKind.CONFLICT, reason="REQUEST_ID_TAKEN"):
    """This request_id (Idempotency-Key) stands for another file, {name}. Give each an id of its own."""


class UploadCutOff(DomainError, kind=ErrorKind.INVALID, reason="INVALID_PARAMETER"):
    """The upload ended in the middle, so nothing of it is kept. Send it again."""


class UploadTooSlow(DomainError, kind=ErrorKind.CONFLICT, reason="REQUEST_TIMEOUT"):
    """The upload took over {limit} s and was cancelled. Send it faster, or compressed."""


class CheckStopped(DomainError, kind=ErrorKind.INVALID, reason="CHECK_STOPPED"):
    """The check of the upload was stopped: it took over {gibibytes} GiB, or too much time. Split the file."""


class UploadSilent(DomainError, kind=ErrorKind.CONFLICT, reason="REQUEST_TIMEOUT"):
    """The upload stalled for {limit} s and was cancelled. Send it again."""


class NoTargets(DomainError, kind=ErrorKind.INVALID, reason="NO_TARGETS"):
    """{dataset_id} has no target for {metric} in {rows} or more of its rows. Add it, or order no metrics."""


class OtherModel(DomainError, kind=ErrorKind.INVALID, reason="MODEL_MISMATCH"):
    """The lines of {dataset_id} name the model {line_model}, not {model}. Allow it by line_models."""


class CannotCompleteLines(DomainError, kind=ErrorKind.CONFLICT, reason="UNSUPPORTED"):
    """The lines ask /v1/completions, but pool {pool} supports chat prompts only (engine {engine})."""


class RowTooLarge(DomainError, kind=ErrorKind.INVALID, reason="SAMPLE_TOO_LARGE"):
    """Row {doc_id} (from 0) of {name} ({row_id}) takes {bytes} bytes; a sample at most {limit}. Cut it."""


class FileNotFound(DomainError, kind=ErrorKind.NOT_FOUND, reason="FILE_NOT_FOUND"):
    """There is no file {file_id}. List the files to see those there are."""


class FileInUse(DomainError, kind=ErrorKind.CONFLICT, reason="FILE_IN_USE"):
    """The batch {batch_id} uses the file {file_id}, so it stays. Wait for the batch, or cancel it first."""


class FileInUseByRun(DomainError, kind=ErrorKind.CONFLICT, reason="FILE_IN_USE"):
    """The run {run_id} uses the file {file_id}, so it stays. Wait for the run, or cancel it first."""


class FileInUseElsewhere(FileInUseByRun, reason="FILE_IN_USE"):
    """A run of another project uses the file {file_id}, so it stays until that run ends."""


class FileTooLarge(DomainError, kind=ErrorKind.INVALID, reason="FILE_TOO_LARGE"):
    """The file {name} has more than {limit} bytes{when}, the maximum of a batch. Split it."""


class StorageQuotaExceeded(DomainError, kind=ErrorKind.EXHAUSTED, reason="STORAGE_QUOTA_EXCEEDED"):
    """{user} stores {used} of {limit} {unit}, and {added} more do not fit. Delete some or ask an operator."""


class ProjectStorageQuotaExceeded(StorageQuotaExceeded, reason="PROJECT_STORAGE_QUOTA_EXCEEDED"):
    """Project {project_id} stores {used} of {limit} bytes, and has no room for {added} more."""


class TasksNotFound(DomainError, kind=ErrorKind.NOT_FOUND, reason="TASKS_NOT_FOUND"):
    """There are no tasks {tasks_digest}. Upload them, and order within a day."""


class FaultKind(StrEnum):
    """Kinds of faults for programs; people read the sentence."""

    INVALID = "invalid"
    UNREADABLE = "unreadable"
    MISSING = "missing"
    DUPLICATE = "duplicate"
    OTHER_URL = "other_url"
    MODEL_MISMATCH = "model_mismatch"
    EMPTY = "empty"
    TOO_MANY = "too_many"


class LineFault(Exception):
    """A line is refused: the field, and the problem as one sentence.

    `text` is what is written there, of a line that cannot be read.
    """

    def __init__(
        self, field: str, problem: str, kind: FaultKind = FaultKind.INVALID, *, text: str = ""
    ) -> None:
        super().__init__(problem)
        self.field = field
        self.problem = problem
        self.kind = kind
        self.text = text


class BrokenFile(Exception):
    """The rest of the file cannot be read; the message is one sentence."""

    kind = FaultKind.INVALID


class TooManyLines(BrokenFile):
    """The file has too many lines; the rest is not read."""

    kind = FaultKind.TOO_MANY
