"""A terminal in a sandbox: keys go in, and its screen and what scrolled off it come out."""

from dataclasses import dataclass

from services.worker.rollouts.terminus.ports import Terminal

# Of the protocol of Terminus 2.
COLUMNS, ROWS = 160, 40
# Lines above the screen that are kept to tell new output from what was there.
HISTORY_LINES = 2000
_SCREEN, _NEW = "Current Terminal Screen:", "New Terminal Output:"


class TerminalEnded(Exception):
    """The terminal is gone, as where the agent ended all of its processes."""


@dataclass(slots=True)
class SeenTerminal:
    """Shows what is new since the last look, or the screen where that cannot be told."""

    terminal: Terminal
    _seen: str | None = None

    async def look(self) -> str:
        now, before = await self.terminal.history(), self._seen
        self._seen = now
        new = None if before is None else _new_part(before.strip(), now)
        if new is not None and new.strip():
            return f"{_NEW}\n{new.rstrip()}"
        return f"{_SCREEN}\n{(await self.terminal.screen()).rstrip()}"


def _new_part(before: str, now: str) -> str | None:
    """From the last line on that was there: it may have grown. None where that line is gone."""
    start = now.find(before)
    if start < 0:
        return None
    return now[start + before.rfind("\n") + 1 :]
