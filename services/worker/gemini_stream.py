"""A streamed answer of streamGenerateContent, put together into the one of generateContent."""

from __future__ import annotations

from services.worker.event_stream import ServerSentEvents, StreamEvent
from services.worker.http_answer_stream import BrokenOff, StreamedText
from services.worker.http_failures import read_status
from services.worker.json_answers import Json, object_of, objects_of, read_document, text_of


class GeminiStream:
    ends_with_body = True

    def __init__(self) -> None:
        self.reader = ServerSentEvents()
        self.has_begun = False
        self.shows_thoughts = False
        self._text = StreamedText()
        self._finish_reason = ""
        # What each event tells anew: the last word counts.
        self._told: Json = {}

    @property
    def is_whole(self) -> bool:
        """A candidate says why it ended, be it in each event; for a blocked prompt there is none."""
        return bool(self._finish_reason or object_of(self._told.get("promptFeedback")).get("blockReason"))

    def add(self, event: StreamEvent) -> None:
        chunk = read_document(event.data)
        if chunk.get("error"):
            raise BrokenOff(read_status(object_of(chunk["error"]).get("code")) or 500, event.data)
        self._told |= {name: chunk[name] for name in ("promptFeedback", "usageMetadata") if chunk.get(name)}
        for candidate in objects_of(chunk.get("candidates")):
            if not candidate.get("index"):
                self._add_candidate(candidate)

    def _add_candidate(self, candidate: Json) -> None:
        self._finish_reason = text_of(candidate.get("finishReason")) or self._finish_reason
        for part in objects_of(object_of(candidate.get("content")).get("parts")):
            if part.get("thought") is True:
                self.shows_thoughts = True
                self.has_begun = True
            else:
                self.has_begun |= self._text.add(part.get("text"))

    def document(self) -> Json:
        candidate: Json = {"finishReason": self._finish_reason}
        if self._text.text:
            candidate["content"] = {"parts": [{"text": self._text.text}]}
        return self._told | {"candidates": [candidate] if self._finish_reason else []}
