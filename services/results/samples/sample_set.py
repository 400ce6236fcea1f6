"""A sample set as stored: the ordered samples of one planned task, with what is expected of each."""

from dataclasses import dataclass

from services.results.scores.answer import Target


@dataclass(frozen=True, slots=True)
class ChatMessage:
    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """A text or a chat, one of the two."""

    text: str | None = None
    messages: tuple[ChatMessage, ...] = ()


@dataclass(frozen=True, slots=True)
class Sample:
    """`target` holds the choices too: together they are all that scoring needs.

    `doc_json` is the row it was made from; it is kept, and empty when samples are read to be asked.
    """

    position: int
    doc_id: int
    digest: bytes
    prompt: Prompt
    target: Target
    cluster: str = ""
    doc_json: str = ""


@dataclass(frozen=True, slots=True)
class SampleSet:
    """A committed set; the same ordered digests and clusters are always the same set."""

    set_id: str
    digest: bytes
