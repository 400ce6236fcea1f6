"""Errors of sandboxes. None of them is an answer of the model."""

from services.common.errors import DomainError, ErrorKind


class SandboxError(DomainError):
    """The sandbox failed."""


class CannotIsolate(SandboxError):
    """This machine cannot isolate code: {problem}"""

    kind = ErrorKind.UNAVAILABLE


class SandboxNotOpened(SandboxError):
    """The sandbox could not be opened: {problem}"""

    kind = ErrorKind.UNAVAILABLE


class SandboxTooLarge(SandboxError):
    """The task asks for {wanted}, and a sandbox here has at most {maximum} ({setting} of the worker)."""

    kind = ErrorKind.INVALID


class ImageRefused(SandboxError):
    """The image {image} needs containers. Set PROCTOR_WORKER_SANDBOX=docker (or kubernetes, modal) there."""

    kind = ErrorKind.INVALID


class SandboxLost(SandboxError):
    """The sandbox is gone: {problem}"""

    kind = ErrorKind.UNAVAILABLE


class CommandRefused(SandboxError):
    """The command cannot be run: {problem}"""

    kind = ErrorKind.INVALID


class FilesRefused(SandboxError):
    """The files of {path} cannot be moved: {problem}"""

    kind = ErrorKind.INVALID


class VerifierFailed(SandboxError):
    """The tests gave no result, which is no score: {problem}"""
