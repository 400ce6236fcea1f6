"""What a streamed answer is put together from: the seam between the reading of a stream and its protocol."""

from __future__ import annotations

from typing import Protocol

from services.worker.engine import LONGEST_ANSWER_CHARACTERS
from services.worker.event_stream import EventReader, StreamEvent
from services.worker.json_answers import Json


class BrokenOff(Exception):
    """An error came where more of the answer was expected; `status` is what it stands for."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(f"the server broke off with {status}")
        self.status = status
        self.body = body


class AnswerStream(Protocol):
    """Becomes the document that the same server answers unstreamed, so that one reading serves both."""

    @property
    def reader(self) -> EventReader: ...

    @property
    def has_begun(self) -> bool:
        """Something generated has come, be it thought or said."""

    @property
    def shows_thoughts(self) -> bool: ...

    @property
    def is_whole(self) -> bool:
        """The protocol's own sign of the end has come: without it an answer was cut off."""

    @property
    def ends_with_body(self) -> bool:
        """That sign may come before more of the answer, which is over only with the body."""

    def add(self, event: StreamEvent) -> None:
        """Raises BrokenOff for an error in the middle, ProviderFailed for what cannot be read."""

    def document(self) -> Json: ...


class StreamedText:
    """What is longer than any answer may be is not held, and is refused by its length like any other."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._is_given = False

    def add(self, part: object) -> bool:
        """Whether it says anything."""
        if not isinstance(part, str):
            return False
        self._is_given = True
        if self._length <= LONGEST_ANSWER_CHARACTERS:
            self._parts.append(part)
            self._length += len(part)
        return bool(part)

    @property
    def text(self) -> str | None:
        """None where there was none, not even an empty one."""
        return "".join(self._parts) if self._is_given else None
