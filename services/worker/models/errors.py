"""What keeps a worker from starting, each as one sentence."""

from services.common.errors import DomainError, ErrorKind


class WorkerError(DomainError):
    """The worker cannot go on."""


class PoolsFileInvalid(WorkerError):
    """The pools file {path} cannot be used: {problem}. Correct it or set PROCTOR_POOLS_FILE."""

    kind = ErrorKind.INVALID
    reason = "INVALID_PARAMETER"


class UnknownPool(WorkerError):
    """The pools file {path} has no pool {pool}; it has: {known}. Set PROCTOR_WORKER_POOL to one of them."""

    kind = ErrorKind.INVALID
    reason = "INVALID_PARAMETER"


class KeyFileUnreadable(WorkerError):
    """The file {path} that {variable} names for a key cannot be used: {problem}. Mount it or unset that."""

    kind = ErrorKind.INVALID
    reason = "INVALID_PARAMETER"


class KeyUnusable(WorkerError):
    """The key of {variable} has letters that no request can carry: it must be one line of plain ASCII."""

    kind = ErrorKind.INVALID
    reason = "INVALID_PARAMETER"
