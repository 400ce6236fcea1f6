"""A streamed message of the Messages API, put together into the one it gives unstreamed."""

from __future__ import annotations

from services.worker.anthropic_failures import status_of_error
from services.worker.event_stream import ServerSentEvents, StreamEvent
from services.worker.http_answer_stream import BrokenOff, StreamedText
from services.worker.json_answers import Json, object_of, read_document, text_of


class AnthropicStream:
    """Events of a kind that is not known here, such as a ping, are passed over, as the provider asks for."""

    ends_with_body = False

    def __init__(self) -> None:
        self.reader = ServerSentEvents()
        self.has_begun = False
        self.shows_thoughts = False
        self.is_whole = False
        self._text = StreamedText()
        self._ending: Json = {}
        self._usage: Json = {}

    def add(self, event: StreamEvent) -> None:
        document = read_document(event.data)
        match document.get("type"):
            case "error":
                raise BrokenOff(status_of_error(document), event.data)
            case "message_start":
                self._count(object_of(document.get("message")))
            case "content_block_start":
                self._add_part(object_of(document.get("content_block")))
            case "content_block_delta":
                self._add_part(object_of(document.get("delta")))
            case "message_delta":
                self._ending |= object_of(document.get("delta"))
                self._count(document)
            case "message_stop":
                self.is_whole = True

    def _add_part(self, part: Json) -> None:
        """A block at its start or what is added to it: only text is said, a signature is nothing."""
        thinks = bool(text_of(part.get("thinking")))
        self.shows_thoughts |= thinks
        self.has_begun |= self._text.add(part.get("text")) or thinks or bool(part.get("partial_json"))

    def _count(self, told: Json) -> None:
        """The counts of the end are those of the whole; what it does not name was told at the start."""
        usage = object_of(told.get("usage"))
        self._usage |= {name: value for name, value in usage.items() if value is not None}

    def document(self) -> Json:
        content = [{"type": "text", "text": self._text.text}] if self._text.text else []
        return self._ending | {"content": content, "usage": self._usage}
