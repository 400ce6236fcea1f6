"""Reads a stream piece by piece, wherever the pieces are cut: lines, a server's events, lines of JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from services.worker.engines.engine import ProviderFailed

# No answer is held longer than this before it can be read: the last line of Ollama tells the whole context.
LONGEST_EVENT_BYTES = 4 * 1024 * 1024
# Ends whatever a server left open; what was cut off in the middle is no JSON and is found there.
END_OF_STREAM = b"\n\n"


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """`name` is empty where the server gives none."""

    data: bytes
    name: str = ""


class EventReader(Protocol):
    def feed(self, piece: bytes) -> list[StreamEvent]:
        """What is complete with this piece."""


class LineReader:
    """Lines that end with LF, CRLF or CR. Bytes throughout, so that a cut letter is never a broken one."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._held = 0
        self._ended_in_return = False

    def feed(self, piece: bytes) -> list[bytes]:
        if self._ended_in_return and piece:
            self._ended_in_return = False
            piece = piece.removeprefix(b"\n")
        if b"\r" in piece:
            self._ended_in_return = piece.endswith(b"\r")
            piece = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = piece.split(b"\n")
        if lines:
            self._parts.append(lines[0])
            lines[0] = b"".join(self._parts)
            self._parts.clear()
            self._held = 0
        if rest:
            self._hold(rest)
        return lines

    def _hold(self, rest: bytes) -> None:
        self._parts.append(rest)
        self._held += len(rest)
        refuse_endless(self._held)


class JsonLines:
    """One document a line."""

    def __init__(self) -> None:
        self._lines = LineReader()

    def feed(self, piece: bytes) -> list[StreamEvent]:
        return [StreamEvent(line) for line in self._lines.feed(piece) if line.strip()]


class ServerSentEvents:
    """As the HTML standard defines them: comments and unknown fields are nothing, lines of data joined."""

    def __init__(self) -> None:
        self._lines = LineReader()
        self._is_first = True
        self._name = b""
        self._data: list[bytes] = []
        self._held = 0

    def feed(self, piece: bytes) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        for line in self._lines.feed(piece):
            if line:
                self._take(line)
            elif self._data:
                events.append(StreamEvent(b"\n".join(self._data), self._name.decode("utf-8", "replace")))
                self._forget()
            else:
                self._forget()
        return events

    def _take(self, line: bytes) -> None:
        if self._is_first:
            self._is_first = False
            line = line.removeprefix(b"\xef\xbb\xbf")
        field, _, value = line.partition(b":")
        if field == b"data":
            value = value.removeprefix(b" ")
            self._data.append(value)
            self._held += len(value)
            refuse_endless(self._held)
        elif field == b"event":
            self._name = value.removeprefix(b" ")

    def _forget(self) -> None:
        self._name, self._data, self._held = b"", [], 0


def refuse_endless(held: int) -> None:
    if held > LONGEST_EVENT_BYTES:
        raise ProviderFailed(
            f"The server sent more than {LONGEST_EVENT_BYTES:,} bytes without an end in them."
        )
