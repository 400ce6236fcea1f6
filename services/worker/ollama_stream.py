"""A streamed answer of Ollama, put together into the one it gives unstreamed."""

from __future__ import annotations

from services.worker.event_stream import JsonLines, StreamEvent
from services.worker.http_answer_stream import BrokenOff, StreamedText
from services.worker.json_answers import Json, object_of, read_document, text_of


class OllamaStream:
    ends_with_body = False

    def __init__(self, *, is_chat: bool) -> None:
        self.reader = JsonLines()
        self.has_begun = False
        self.shows_thoughts = False
        self._is_chat = is_chat
        self._text = StreamedText()
        self._last: Json = {}

    @property
    def is_whole(self) -> bool:
        return bool(self._last)

    def add(self, event: StreamEvent) -> None:
        """An error has no code; what it says may tell more."""
        line = read_document(event.data)
        if line.get("error"):
            raise BrokenOff(500, event.data)
        holder = object_of(line.get("message")) if self._is_chat else line
        says = self._text.add(holder.get("content" if self._is_chat else "response"))
        thinks = bool(text_of(holder.get("thinking")))
        self.shows_thoughts |= thinks
        self.has_begun |= says or thinks
        if line.get("done") is True:
            self._last = line

    def document(self) -> Json:
        """The last line counts the tokens and says why it ended."""
        text = self._text.text
        return self._last | ({"message": {"content": text}} if self._is_chat else {"response": text})
