"""Errors of sandboxes. None of them is an answer of the model."""

from services.common.errors import DomainError, ErrorKind


class SandboxError(DomainError):
    """The sandbox failed."""


class CannotIsolate(SandboxError, kind=ErrorKind.UNAVAILABLE):
    """This machine cannot isolate code: {problem}"""


class SandboxNotOpened(SandboxError, kind=ErrorKind.UNAVAILABLE):
    """The sandbox could not be opened: {problem}"""


class SandboxTooLarge(SandboxError, kind=ErrorKind.INVALID):
    """The task asks for {wanted}, and a sandbox here has at most {maximum} ({setting} of the worker)."""


class ImageRefused(SandboxError, kind=ErrorKind.INVALID):
    """The image {image} needs containers. Set PROCTOR_WORKER_SANDBOX_ENGINE=docker (or kubernetes, modal)."""


class ImageTooLarge(SandboxError, kind=ErrorKind.INVALID):
    """The image {image} is larger than {maximum}, the most that is pulled; use a smaller one."""


class ImageNotAllowed(SandboxError, kind=ErrorKind.FORBIDDEN):
    """The image {image} is not among those that PROCTOR_WORKER_SANDBOX_IMAGES of the worker allows."""


class ImageNotBuilt(SandboxError, kind=ErrorKind.INVALID):
    """The image of the task cannot be built: {problem}"""


class SandboxLost(SandboxError, kind=ErrorKind.UNAVAILABLE):
    """The sandbox is gone: {problem}"""


class SandboxBlocked(SandboxLost):
    """No command runs in the sandbox: {problem}"""


class CommandRefused(SandboxError, kind=ErrorKind.INVALID):
    """The command cannot be run: {problem}"""


class FilesRefused(SandboxError, kind=ErrorKind.INVALID):
    """The files of {path} cannot be moved: {problem}"""


class FilesOverLimit(FilesRefused):
    """The files of {path} cannot be moved: {problem}"""


class VerifierFailed(SandboxError):
    """The tests gave no result, which is not a score: {problem}"""
