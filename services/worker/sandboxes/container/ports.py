"""A container as its engine offers it: docker's, kubernetes' or a hosted one."""

from collections.abc import Mapping, Sequence
from enum import Enum, auto
from typing import NamedTuple, Protocol


class Part(NamedTuple):
    """A part of what a program writes. `is_control`: of standard error, where programs of ours report."""

    content: bytes
    is_control: bool = False


END = Part(b"")


class Life(Enum):
    """`OUT_OF_MEMORY`: it ended since its processes took more memory than it may have."""

    RUNNING = auto()
    ENDED = auto()
    OUT_OF_MEMORY = auto()


class StartedCommand(Protocol):
    """A command that was started in a container."""

    async def read(self) -> Part:
        """The next part, END at the end. Raises SandboxLost."""
        ...

    async def write(self, content: bytes) -> None:
        """More of its standard input, which stays open. What is written after its end is lost."""
        ...

    async def exit_code(self) -> int | None:
        """The engine's own report after its output ended, None until there is one. Raises SandboxLost."""
        ...

    async def close(self) -> None:
        """Ends the connection, not the command. Can be repeated."""
        ...


class Container(Protocol):
    @property
    def environment(self) -> Mapping[str, str]:
        """Variables of its image."""
        ...

    async def execute(self, argv: Sequence[str], *, has_input: bool) -> StartedCommand:
        """Starts a command as the container's user. Raises SandboxLost."""
        ...

    async def kill_processes(self) -> None:
        """Kills all but the first process. Raises SandboxLost."""
        ...

    async def life(self) -> Life:
        """Raises SandboxLost where its engine does not say."""
        ...

    async def relay(self) -> StartedCommand:
        """A relay that shares the container's network and none of its processes. Raises SandboxLost."""
        ...

    async def remove(self) -> None:
        """Can be repeated."""
        ...
