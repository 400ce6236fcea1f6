"""Errors of uploads, each as one sentence with what to do, and the faults of their lines."""

from enum import StrEnum

from services.common.errors import DomainError, ErrorKind


class DatasetNotFound(DomainError):
    """There is no data set {dataset_id}. List them to see those there are."""

    kind = ErrorKind.NOT_FOUND
    reason = "DATASET_NOT_FOUND"


class DatasetInUse(DomainError):
    """Run {run_id} uses the data set {dataset_id}, so it stays. Wait for the run, or cancel it first."""

    kind = ErrorKind.CONFLICT
    reason = "DATASET_IN_USE"


class DatasetTooLarge(DomainError):
    """The file has more than {limit} {unit}{when}, which is the limit. Split it."""

    kind = ErrorKind.INVALID
    reason = "DATASET_TOO_LARGE"


class TooManyUploads(DomainError):
    """So many uploads{whose} run already: {limit}. Try again in {retry_after_seconds} s."""

    kind = ErrorKind.EXHAUSTED
    reason = "QUEUE_FULL"


class UploadRequestTaken(DomainError):
    """This request_id (Idempotency-Key) stands for another file, {name}. Give each an id of its own."""

    kind = ErrorKind.CONFLICT
    reason = "REQUEST_ID_TAKEN"


class UploadCutOff(DomainError):
    """The upload ended in the middle, so nothing of it is kept. Send it again."""

    kind = ErrorKind.INVALID
    reason = "INVALID_PARAMETER"


class UploadTooSlow(DomainError):
    """The upload was not over after {limit} s, so it was given up. Send it faster, or compressed."""

    kind = ErrorKind.CONFLICT
    reason = "DEADLINE_REACHED"


class CheckEnded(DomainError):
    """The check of the upload was stopped: it took over {gibibytes} GiB, or too much time. Split the file."""

    kind = ErrorKind.INVALID
    reason = "DATASET_TOO_LARGE"


class UploadSilent(DomainError):
    """Hardly a byte of the upload came for {limit} s, so it was given up. Send it again."""

    kind = ErrorKind.CONFLICT
    reason = "DEADLINE_REACHED"


class NoTargets(DomainError):
    """{dataset_id} has no target for {metric} in {rows} or more of its rows. Add it, or order no metrics."""

    kind = ErrorKind.INVALID
    reason = "NO_TARGETS"


class OtherModel(DomainError):
    """The lines of {dataset_id} name the model {line_model}, not {model}. Allow it by line_models."""

    kind = ErrorKind.INVALID
    reason = "MODEL_MISMATCH"


class CannotCompleteLines(DomainError):
    """The lines ask /v1/completions, but pool {pool} continues no text: its engine {engine} only chats."""

    kind = ErrorKind.CONFLICT
    reason = "UNSUPPORTED"


class RowTooLarge(DomainError):
    """Row {row} (from 0) of {name} ({row_id}) takes {bytes} bytes; a sample takes {limit} at most. Cut it."""

    kind = ErrorKind.INVALID
    reason = "SAMPLE_TOO_LARGE"


class ObjectStoreUnavailable(DomainError):
    """The object store cannot be used: {problem}. Nothing was changed; check it, then try again."""

    kind = ErrorKind.UNAVAILABLE
    reason = "OBJECT_STORE_UNAVAILABLE"


class FileNotFound(DomainError):
    """There is no file {file_id}. List the files to see those there are."""

    kind = ErrorKind.NOT_FOUND
    reason = "FILE_NOT_FOUND"


class FileInUse(DomainError):
    """The batch {batch_id} uses the file {file_id}, so it stays. Wait for the batch, or cancel it first."""

    kind = ErrorKind.CONFLICT
    reason = "FILE_IN_USE"


class FileInUseByRun(DomainError):
    """The run {run_id} uses the file {file_id}, so it stays. Wait for the run, or cancel it first."""

    kind = ErrorKind.CONFLICT
    reason = "FILE_IN_USE"


class FileTooLarge(DomainError):
    """The file {name} has more than {limit} bytes{when}, the most of a batch. Split it."""

    kind = ErrorKind.INVALID
    reason = "FILE_TOO_LARGE"


class StorageQuotaExceeded(DomainError):
    """{user} stores {used} of {limit} {unit}, and {added} more do not fit. Delete some or ask an operator."""

    kind = ErrorKind.EXHAUSTED
    reason = "STORAGE_QUOTA_EXCEEDED"


class ProjectStorageExceeded(StorageQuotaExceeded):
    """Project {project_id} stores {used} of {limit} bytes, and has no room for {added} more."""

    reason = "PROJECT_STORAGE_EXCEEDED"


class TasksNotFound(DomainError):
    """There are no tasks {tasks_digest}. Upload them, and order within a day."""

    kind = ErrorKind.NOT_FOUND
    reason = "TASKS_NOT_FOUND"


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
    """A line is rejected: the field, and the problem as one sentence."""

    def __init__(self, field: str, problem: str, kind: FaultKind = FaultKind.INVALID) -> None:
        super().__init__(problem)
        self.field = field
        self.problem = problem
        self.kind = kind


class BrokenFile(Exception):
    """The rest of the file cannot be read; the message is one sentence."""

    kind = FaultKind.INVALID


class TooManyLines(BrokenFile):
    """The file has too many lines; the rest is not read."""

    kind = FaultKind.TOO_MANY
