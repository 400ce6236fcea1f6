"""A terminal of tmux, where the sandbox has it."""

from collections.abc import Mapping
from dataclasses import dataclass

from services.common.sandboxes.errors import CommandRefused
from services.common.sandboxes.ports import Sandbox
from services.common.sandboxes.sandbox import Command, CommandResult
from services.worker.rollouts.terminus.terminal import COLUMNS, HISTORY_LINES, ROWS, TerminalEnded

_SESSION = "terminus"
# tmux refuses messages of more than 16 KiB, a key for each character among them.
_MAX_KEYS_BYTES = 4000
_BUFFER = "keys"
_OUTPUT_BYTES = 1_000_000
_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class TmuxTerminal:
    sandbox: Sandbox
    environment: Mapping[str, str]

    async def send(self, keys: str) -> None:
        content = keys.encode("utf-8", "replace").replace(b"\0", b"")
        if not content:
            return
        if len(content) > _MAX_KEYS_BYTES:
            await self._checked("load-buffer", "-b", _BUFFER, "-", stdin=content)
            await self._checked("paste-buffer", "-d", "-b", _BUFFER, "-t", _SESSION)
            return
        await self._checked("send-keys", "-t", _SESSION, "--", _escaped(content.decode()))

    async def screen(self) -> str:
        return await self._checked("capture-pane", "-p", "-t", _SESSION)

    async def history(self) -> str:
        return await self._checked("capture-pane", "-p", "-S", f"-{HISTORY_LINES}", "-t", _SESSION)

    async def start(self, cwd: str) -> bool:
        """False where the sandbox has no tmux, or none that runs. Raises SandboxLost."""
        size = ("-x", str(COLUMNS), "-y", str(ROWS))
        limit = ("set-option", "-g", "history-limit", str(HISTORY_LINES), ";")
        session = ("new-session", "-d", *size, "-s", _SESSION, "-c", cwd, "bash --login")
        try:
            return (await self._run("start-server", ";", *limit, *session)).is_success
        except CommandRefused:
            return False

    async def _checked(self, *words: str, stdin: bytes = b"") -> str:
        result = await self._run(*words, stdin=stdin)
        if not result.is_success:
            raise TerminalEnded(result.text.strip())
        return result.text

    async def _run(self, *words: str, stdin: bytes = b"") -> CommandResult:
        command = Command(
            ("tmux", "-u", *words),
            env=self.environment,
            stdin=stdin,
            timeout_seconds=_SECONDS,
            output_bytes=_OUTPUT_BYTES,
        )
        return await self.sandbox.run(command)


def _escaped(keys: str) -> str:
    """tmux takes a semicolon at the end of a word for the end of its command."""
    return f"{keys[:-1]}\\;" if keys.endswith(";") else keys
