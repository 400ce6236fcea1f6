"""Incremental parsers for streams: lines, server-sent events, JSON lines; chunks may be cut anywhere."""

from dataclasses import dataclass

from services.worker.engines.engine import MAX_ANSWER_CHARACTERS
from services.worker.engines.errors import ProviderFailed

# The most bytes buffered for one event: the last line of Ollama holds the whole context.
MAX_EVENT_BYTES = 4 * 1024 * 1024
# Completes an event that the server left open; one cut off in the middle is invalid JSON and fails there.
END_OF_STREAM = b"\n\n"


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """`name` is empty where the server gives none."""

    data: bytes
    name: str = ""


class LineReader:
    """Lines that end with LF, CRLF or CR. Bytes throughout, so that a chunk may cut a character."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._buffered = 0
        self._ended_in_return = False

    def feed(self, chunk: bytes) -> list[bytes]:
        if self._ended_in_return and chunk:
            self._ended_in_return = False
            # CR and LF of one line end may come in two chunks.
            chunk = chunk.removeprefix(b"\n")
        if b"\r" in chunk:
            self._ended_in_return = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = chunk.split(b"\n")
        if lines:
            self._parts.append(lines[0])
            lines[0] = b"".join(self._parts)
            self._parts.clear()
            self._buffered = 0
        if rest:
            self._buffer(rest)
        return lines

    def _buffer(self, rest: bytes) -> None:
        self._parts.append(rest)
        self._buffered += len(rest)
        refuse_endless(self._buffered)


class JsonLines:
    """One JSON document a line."""

    def __init__(self) -> None:
        self._lines = LineReader()

    def feed(self, chunk: bytes) -> list[StreamEvent]:
        return [StreamEvent(line) for line in self._lines.feed(chunk) if line.strip()]


class ServerSentEvents:
    """Follows the HTML standard: comments and unknown fields are skipped, lines of data are joined."""

    def __init__(self) -> None:
        self._lines = LineReader()
        self._is_first = True
        self._name = b""
        self._data: list[bytes] = []
        self._buffered = 0

    def feed(self, chunk: bytes) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        for line in self._lines.feed(chunk):
            if line:
                self._add_field(line)
            elif self._data:
                events.append(StreamEvent(b"\n".join(self._data), self._name.decode("utf-8", "replace")))
                self._reset()
            else:
                self._reset()
        return events

    def _add_field(self, line: bytes) -> None:
        if self._is_first:
            self._is_first = False
            # The standard allows a byte order mark at the beginning.
            line = line.removeprefix(b"\xef\xbb\xbf")
        field, _, value = line.partition(b":")
        if field == b"data":
            value = value.removeprefix(b" ")
            self._data.append(value)
            self._buffered += len(value)
            refuse_endless(self._buffered)
        elif field == b"event":
            self._name = value.removeprefix(b" ")

    def _reset(self) -> None:
        self._name, self._data, self._buffered = b"", [], 0


EventReader = ServerSentEvents | JsonLines


def refuse_endless(buffered: int) -> None:
    if buffered > MAX_EVENT_BYTES:
        raise ProviderFailed(f"The server sent more than {MAX_EVENT_BYTES:,} bytes without an end in them.")


class StreamedText:
    """Collects text and reasoning up to the longest answer allowed; a longer one is refused afterwards.

    `has_begun`: whether anything generated has arrived, reasoning and tool calls included. `has_ended`:
    whether a finish reason has, where the protocol's end marker comes later or not at all.
    """

    def __init__(self) -> None:
        self.has_begun = False
        self.has_ended = False
        self._reasoning: list[str] = []
        self._parts: list[str] = []
        self._length = 0
        self._has_parts = False

    def add(self, part: object) -> None:
        if not isinstance(part, str):
            return
        self._has_parts = True
        self.has_begun |= bool(part)
        if self._length <= MAX_ANSWER_CHARACTERS:
            self._parts.append(part)
            self._length += len(part)

    def add_reasoning(self, part: str) -> None:
        if not part:
            return
        self.has_begun = True
        if self._length <= MAX_ANSWER_CHARACTERS:
            self._reasoning.append(part)
            self._length += len(part)

    @property
    def reasoning(self) -> str:
        return "".join(self._reasoning)

    @property
    def whole(self) -> str | None:
        """None where no part arrived; an empty part counts as one."""
        return "".join(self._parts) if self._has_parts else None
