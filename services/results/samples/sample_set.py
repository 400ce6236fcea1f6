"""A sample set as stored: the ordered samples of one planned task, with what is expected of each."""

from dataclasses import dataclass

from services.results.scoring import Target


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
    """`target` holds the choices too: together they are all that scoring needs."""

    position: int
    doc_id: int
    digest: bytes
    prompt: Prompt
    target: Target
    cluster: str = ""


@dataclass(frozen=True, slots=True)
class SampleSet:
    """A committed set; the same ordered digests are always the same set."""

    set_id: str
    digest: bytes
