"""A sample set as stored: the ordered samples of one planned task, with what is expected of each."""

from dataclasses import dataclass

from services.results.scores.answer import Target


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """`fields_json`: what the turn has besides, as JSON object text; "content" too where it has parts."""

    role: str
    content: str
    fields_json: str = ""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A text or a chat, one of the two."""

    text: str | None = None
    messages: tuple[ChatMessage, ...] = ()


@dataclass(frozen=True, slots=True)
class Sample:
    """`target` holds the choices too: together they are all that scoring needs.

    `doc_json` is the row it was made from; it is kept, and empty when samples are read to be asked. `row_id`
    and `params_json`, the row's own parameters as JSON object text, are those of a data set.
    """

    position: int
    doc_id: int
    digest: bytes
    prompt: Prompt
    target: Target
    cluster: str = ""
    doc_json: str = ""
    row_id: str = ""
    params_json: str = ""


@dataclass(frozen=True, slots=True)
class SampleSet:
    """A committed set; the same ordered digests and clusters are always the same set."""

    set_id: str
    digest: bytes
