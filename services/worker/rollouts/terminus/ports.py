"""The port of the terminus agent: a terminal in its sandbox."""

from typing import Protocol


class Terminal(Protocol):
    """Each method raises TerminalEnded, and SandboxError."""

    async def send(self, keys: str) -> None:
        """Keys as text, or the name of one key of tmux, such as C-c."""
        ...

    async def screen(self) -> str: ...

    async def history(self) -> str:
        """The screen, and the lines that scrolled off it."""
        ...
