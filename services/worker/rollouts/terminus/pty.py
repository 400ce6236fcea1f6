"""A terminal of our own, for sandboxes without tmux: a shell at a pseudo-terminal, drawn by the worker.

A program in the sandbox holds the shell, passes keys on to it, and keeps what it writes until the worker
asks. Only python3 and bash are needed there.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from services.common.sandboxes.ports import Sandbox
from services.common.sandboxes.sandbox import Command, CommandResult
from services.worker.rollouts.terminus.terminal import COLUMNS, HISTORY_LINES, ROWS, TerminalEnded

# What is kept of the output between two looks: the worker draws each byte.
_KEPT_BYTES = 128 * 1024
_SECONDS = 30.0
_SOCKET = "/tmp/.terminal/socket"  # noqa: S108  # inside
_HOLD = """
import fcntl, os, pty, select, socket, struct, sys, termios
path, cwd = sys.argv[1:3]
columns, rows, kept = map(int, sys.argv[3:])
os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
if os.path.lexists(path):
    os.unlink(path)
listening = socket.socket(socket.AF_UNIX)
listening.bind(path)
listening.listen(8)
if os.fork():
    os._exit(0)
os.setsid()
nothing = os.open(os.devnull, os.O_RDWR)
for file in range(3):
    os.dup2(nothing, file)
shell, terminal = pty.fork()
if not shell:
    os.chdir(cwd)
    os.execvp("bash", ["bash", "--login"])
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
os.set_blocking(terminal, False)
output, keys = bytearray(), bytearray()
while True:
    readable, writable, _ = select.select([terminal, listening], [terminal] if keys else [], [])
    if terminal in readable:
        try:
            part = os.read(terminal, 65536)
        except BlockingIOError:
            part = None
        except OSError:
            part = b""
        if part == b"":
            break
        output += part or b""
        del output[:-kept]
    if terminal in writable:
        try:
            del keys[: os.write(terminal, keys[:1024])]
        except BlockingIOError:
            pass
        except OSError:
            break
    if listening in readable:
        with listening.accept()[0] as asked:
            asked.settimeout(5)
            try:
                while part := asked.recv(65536):
                    keys += part
                asked.sendall(output)
                output.clear()
            except OSError:
                pass
os.unlink(path)
"""
_EXCHANGE = """
import shutil, socket, sys
with socket.socket(socket.AF_UNIX) as asking:
    asking.settimeout(20)
    asking.connect(sys.argv[1])
    asking.sendall(sys.stdin.buffer.read())
    asking.shutdown(socket.SHUT_WR)
    while part := asking.recv(65536):
        sys.stdout.buffer.write(part)
"""
_NAMED = {
    "Enter": "\r",
    "Escape": "\x1b",
    "Tab": "\t",
    "BTab": "\x1b[Z",
    "Space": " ",
    "BSpace": "\x7f",
    "Up": "\x1b[A",
    "Down": "\x1b[B",
    "Right": "\x1b[C",
    "Left": "\x1b[D",
    "Home": "\x1b[1~",
    "End": "\x1b[4~",
    "IC": "\x1b[2~",
    "DC": "\x1b[3~",
    "PageUp": "\x1b[5~",
    "PPage": "\x1b[5~",
    "PageDown": "\x1b[6~",
    "NPage": "\x1b[6~",
}
# Programs that draw on the whole terminal keep what was there with these, and bring it back at their end.
_OTHER_SCREEN = {47, 1047, 1049}


def typed(keys: str) -> str:
    """Text as it is; the name of a key of tmux as what a terminal sends for it."""
    if keys in _NAMED:
        return _NAMED[keys]
    if keys.startswith("^") and len(keys) == 2:
        keys = f"C-{keys[1]}"
    if len(keys) == 3 and keys.startswith("C-") and "@" <= keys[2].upper() <= "_":
        return chr(ord(keys[2].upper()) & 0x1F)
    if len(keys) == 3 and keys.startswith("M-"):
        return f"\x1b{keys[2]}"
    return keys


@dataclass(frozen=True, slots=True)
class _Tolerant:
    """A screen of pyte that passes over sequences that it knows half, such as those for private modes."""

    screen: Any

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.screen, name)
        if not callable(found):
            return found

        def drawn(*values: Any, **kinds: Any) -> Any:
            try:
                return found(*values, **kinds)
            except Exception:  # noqa: BLE001  # the output is hostile, and pyte raises anything
                return None

        return drawn


@dataclass(slots=True)
class DrawnScreen:
    """Output as a terminal draws it. `replies` are what the terminal answers to questions in the output."""

    replies: deque[str] = field(default_factory=lambda: deque(maxlen=100))
    _screen: Any = None
    _stream: Any = None
    _new_stream: Callable[[], Any] = field(init=False)
    # Lines, lines above them, row and column of the first screen while another one is drawn.
    _kept: list[tuple[dict[int, Any], list[Any], int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        import pyte  # noqa: PLC0415  # slow, and needed without tmux only

        self._screen = pyte.HistoryScreen(COLUMNS, ROWS, history=HISTORY_LINES)
        self._screen.write_process_input = self.replies.append
        draw_mode, leave_mode = self._screen.set_mode, self._screen.reset_mode

        def set_mode(*modes: int, **kinds: Any) -> None:
            draw_mode(*modes, **kinds)
            if kinds.get("private") and _OTHER_SCREEN & set(modes) and not self._kept:
                self._keep()

        def reset_mode(*modes: int, **kinds: Any) -> None:
            leave_mode(*modes, **kinds)
            if kinds.get("private") and _OTHER_SCREEN & set(modes) and self._kept:
                self._bring_back()

        self._screen.set_mode, self._screen.reset_mode = set_mode, reset_mode
        self._new_stream = partial(pyte.ByteStream, _Tolerant(self._screen))
        self._stream = self._new_stream()

    def draw(self, output: bytes) -> None:
        try:
            self._stream.feed(output)
        except ValueError:
            # Of a number with thousands of digits: the rest of this output is not drawn.
            self._stream = self._new_stream()

    def lines(self) -> list[str]:
        return [self._line(self._screen.buffer[row]) for row in range(ROWS)]

    def earlier_lines(self) -> list[str]:
        return [self._line(line) for line in self._screen.history.top]

    def _line(self, line: Any) -> str:
        return "".join(line[column].data for column in range(self._screen.columns)).rstrip()

    def _keep(self) -> None:
        screen = self._screen
        kept = (dict(screen.buffer), list(screen.history.top), screen.cursor.y, screen.cursor.x)
        self._kept.append(kept)
        screen.buffer.clear()

    def _bring_back(self) -> None:
        lines, earlier, row, column = self._kept.pop()
        self._screen.buffer.clear()
        self._screen.buffer.update(lines)
        self._screen.history.top.clear()
        self._screen.history.top.extend(earlier)
        self._screen.cursor_position(row + 1, column + 1)


@dataclass(slots=True)
class PtyTerminal:
    sandbox: Sandbox
    environment: Mapping[str, str]
    drawn: DrawnScreen = field(default_factory=DrawnScreen)

    async def send(self, keys: str) -> None:
        await self._exchange(typed(keys).encode("utf-8", "replace"))

    async def screen(self) -> str:
        await self._exchange(b"")
        return "\n".join(self.drawn.lines())

    async def history(self) -> str:
        await self._exchange(b"")
        return "\n".join([*self.drawn.earlier_lines(), *self.drawn.lines()])

    async def start(self, cwd: str) -> CommandResult:
        numbers = (str(COLUMNS), str(ROWS), str(_KEPT_BYTES))
        return await self._run(_HOLD, _SOCKET, cwd, *numbers)

    async def _exchange(self, keys: bytes) -> None:
        replies = "".join(self.drawn.replies).encode()
        self.drawn.replies.clear()
        result = await self._run(_EXCHANGE, _SOCKET, stdin=replies + keys)
        if not result.is_success:
            raise TerminalEnded(result.text.strip())
        await asyncio.to_thread(self.drawn.draw, result.head + result.tail)

    async def _run(self, program: str, *words: str, stdin: bytes = b"") -> CommandResult:
        command = Command(
            ("python3", "-I", "-c", program, *words),
            env=self.environment,
            stdin=stdin,
            timeout_seconds=_SECONDS,
            output_bytes=2 * _KEPT_BYTES,
        )
        return await self.sandbox.run(command)
