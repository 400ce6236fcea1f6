"""What is refused of files, each as one sentence that says what is wrong and what to do."""

from services.common.errors import ErrorKind
from services.scheduler.errors import SchedulerError


class FileNotFound(SchedulerError):
    """There is no file {file_id}. List the files to see those there are."""

    kind = ErrorKind.NOT_FOUND
    reason = "FILE_NOT_FOUND"


class FileInUse(SchedulerError):
    """The batch {batch_id} uses the file {file_id}, so it stays. Wait for the batch, or cancel it first."""

    kind = ErrorKind.CONFLICT
    reason = "FILE_IN_USE"


class FileInUseByRun(SchedulerError):
    """The run {run_id} uses the file {file_id}, so it stays. Wait for the run, or cancel it first."""

    kind = ErrorKind.CONFLICT
    reason = "FILE_IN_USE"


class FileTooLarge(SchedulerError):
    """The file {name} has more than {limit} bytes{when}, the most of a batch. Split it."""

    kind = ErrorKind.INVALID
    reason = "FILE_TOO_LARGE"
