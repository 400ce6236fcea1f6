"""What the generations of one sampling share: made once, since all samples of a shard have the same."""

from collections.abc import Callable
from dataclasses import dataclass

from proctor.values.plain import Json
from proctor.values.sample import Prompt
from services.worker.engines.chat_messages import message_objects
from services.worker.engines.engine import Sampling
from services.worker.engines.errors import RequestRefused
from services.worker.engines.http.ports import ReadAnswer, Request
from services.worker.engines.openai.responses import STREAM_FIELDS, OpenAIStream

# A shard has one, and each of its rows that has parameters of its own.
_MAX_KEPT = 1024


@dataclass(frozen=True, slots=True)
class GenerationForm:
    """A request but for its prompt."""

    # Kept here, so that no other sampling gets its identity meanwhile.
    sampling: Sampling
    is_chat: bool
    fields: Json
    is_streamed: bool
    read: ReadAnswer
    learn: Callable[[RequestRefused], bool]

    def request(self, prompt: Prompt) -> Request:
        if self.is_chat:
            path, body = "/chat/completions", {**self.fields, "messages": message_objects(prompt.messages)}
        else:
            path, body = "/completions", {**self.fields, "prompt": prompt.as_text}
        if not self.is_streamed:
            return Request(path, body, self.read, None, self.learn)
        return Request(path, body | STREAM_FIELDS, self.read, OpenAIStream(is_chat=self.is_chat), self.learn)


class GenerationForms:
    """By identity: to compare two samplings takes longer than to make a form."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, str, bool], GenerationForm] = {}

    def find(self, model: str, sampling: Sampling, *, is_chat: bool) -> GenerationForm | None:
        return self._kept.get((id(sampling), model, is_chat))

    def keep(self, model: str, form: GenerationForm) -> None:
        if len(self._kept) >= _MAX_KEPT:
            self._kept.clear()
        self._kept[id(form.sampling), model, form.is_chat] = form

    def forget(self) -> None:
        self._kept.clear()
