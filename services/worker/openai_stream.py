"""A streamed answer of an OpenAI-compatible server, put together into the one it gives unstreamed."""

from __future__ import annotations

from services.worker.event_stream import ServerSentEvents, StreamEvent
from services.worker.http_answer_stream import BrokenOff, StreamedText
from services.worker.json_answers import Json, object_of, objects_of, read_document, text_of
from services.worker.openai_failures import status_of_error

# The tokens are counted in an event of their own, which is sent only when asked for.
STREAM_FIELDS: Json = {"stream": True, "stream_options": {"include_usage": True}}
_END = b"[DONE]"
# Servers differ in how they name what a model thought.
_THOUGHTS = ("reasoning_content", "reasoning")
# What may stand in place of a content.
_INSTEAD = ("tool_calls", "refusal")


class OpenAIStream:
    ends_with_body = False

    def __init__(self, *, is_chat: bool) -> None:
        self.reader = ServerSentEvents()
        self.has_begun = False
        self.shows_thoughts = False
        self.is_whole = False
        self._is_chat = is_chat
        self._text = StreamedText()
        self._choice: Json | None = None
        self._instead: Json = {}
        self._usage: Json | None = None

    def add(self, event: StreamEvent) -> None:
        if event.data.strip() == _END:
            self.is_whole = True
            return
        chunk = read_document(event.data)
        if chunk.get("error") or chunk.get("object") == "error" or event.name == "error":
            raise BrokenOff(status_of_error(chunk), event.data)
        if isinstance(chunk.get("usage"), dict):
            self._usage = chunk["usage"]
        for choice in objects_of(chunk.get("choices")):
            if not choice.get("index"):
                self._add_choice(choice)

    def _add_choice(self, choice: Json) -> None:
        self._choice = self._choice or {}
        if choice.get("finish_reason"):
            self._choice["finish_reason"] = choice["finish_reason"]
        if not self._is_chat:
            self.has_begun |= self._text.add(choice.get("text"))
            return
        delta = object_of(choice.get("delta"))
        says = self._text.add(delta.get("content"))
        thinks = any(text_of(delta.get(name)) for name in _THOUGHTS)
        instead = {name: delta[name] for name in _INSTEAD if delta.get(name)}
        self._instead |= instead
        self.shows_thoughts |= thinks
        self.has_begun |= says or thinks or bool(instead)

    def document(self) -> Json:
        if self._choice is None:
            return {"choices": []}
        text = self._text.text
        said = {"message": {"content": text, **self._instead}} if self._is_chat else {"text": text}
        return {"choices": [self._choice | said], "usage": self._usage}
