"""A container as its engine offers it: docker's, kubernetes' or a hosted one."""

from collections.abc import Mapping, Sequence
from typing import Protocol


class Execution(Protocol):
    """A command that was started in a container."""

    async def read(self) -> bytes:
        """The next part of its output, empty at the end."""
        ...

    async def write(self, content: bytes) -> None:
        """More of its standard input, which stays open. What is written after its end is lost."""
        ...

    async def exit_code(self) -> int | None:
        """None while it runs. Raises SandboxLost."""
        ...

    async def close(self) -> None:
        """Ends the connection, not the command. Can be repeated."""
        ...


class Container(Protocol):
    @property
    def environment(self) -> Mapping[str, str]:
        """Variables of its image."""
        ...

    async def execute(self, argv: Sequence[str], *, has_input: bool) -> Execution:
        """Starts a command as the container's user. Raises SandboxLost."""
        ...

    async def kill_processes(self) -> None:
        """Kills all but the first process. Raises SandboxLost."""
        ...

    async def is_alive(self) -> bool: ...

    async def relay(self, port: int) -> Execution:
        """The relay, which listens on `port` of the container's loopback. Raises SandboxLost."""
        ...

    async def remove(self) -> None:
        """Can be repeated."""
        ...
