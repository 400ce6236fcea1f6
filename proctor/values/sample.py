"""A sample: what a model is asked, and the target of its answer."""

from dataclasses import dataclass, field

from proctor.values.code import CodeCheck
from proctor.values.making.quickly_made import quickly_made

# A suite with its files fits into a message of 4 MiB, which the gateway accepts, with room for names.
MAX_SUITE_BYTES = 3 * 1024 * 1024
MAX_FEWSHOT = 100
# Samples of a shard, the least a worker takes at a time. Larger ones leave workers idle at a run's end,
# smaller ones cost a message and an acknowledgement for a few samples.
SHARD_SAMPLES = 64
# Where neither its end is near nor a few samples more count: in the middle of a large task.
MAX_SHARD_SAMPLES = 128
# Samples of a set that are read in one call.
MAX_READ_SAMPLES = 1024
# Samples are rendered one after the other, so a preview of a far one takes long.
LAST_PREVIEWED_ROW = 20_000


@quickly_made
@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One turn. `content` is its text, also where it has parts.

    `fields_json` is a JSON object as text with what the turn has besides, "content" too where it has parts.
    """

    role: str
    content: str
    fields_json: str = ""


@quickly_made
@dataclass(frozen=True, slots=True)
class Prompt:
    """Either a text to continue or messages to answer."""

    text: str | None = None
    messages: tuple[ChatMessage, ...] = ()

    @property
    def is_chat(self) -> bool:
        return bool(self.messages)

    @property
    def as_text(self) -> str:
        """The prompt for a person or a table: turns are separated by an empty line."""
        if self.text is not None:
            return self.text
        return "\n\n".join(f"{turn.role}: {turn.content}" for turn in self.messages)


@quickly_made
@dataclass(frozen=True, slots=True)
class Target:
    """The target of a sample: `choice` (an index) or, if several are right, `right_choices`, or `texts`.

    Beside a choice, `texts` are what a chosen choice is compared with, `wrong_texts` are known to be wrong,
    and `choice_texts` is what each choice says there; empty means the choices themselves.
    """

    choice: int | None = None
    texts: tuple[str, ...] = ()
    right_choices: tuple[int, ...] = ()
    wrong_texts: tuple[str, ...] = ()
    choice_texts: tuple[str, ...] = ()


@quickly_made
@dataclass(frozen=True, slots=True)
class Sample:
    """One row of a task, rendered. Positions and rows count from 0; `digest` is a SHA-256 of 32 bytes.

    `choices` are continuations, delimiter included. `choice_ending` is the end that all of them have where
    only its log-probability counts, and the rest of each choice is context; "" otherwise. Samples of one
    passage share a `cluster`. `doc_json` is the row itself, no part of the digest. `row_id` and `params_json`
    (the row's own parameters, a JSON object as text) are set for rows of a data set, `code_check` where the
    answer is executed, `rollout_spec`, a serialized message, where an agent works on it.
    """

    position: int
    doc_id: int
    digest: bytes
    prompt: Prompt
    choices: tuple[str, ...] = ()
    target: Target = field(default_factory=Target)
    cluster: str = ""
    doc_json: str = ""
    row_id: str = ""
    params_json: str = ""
    code_check: CodeCheck | None = None
    rollout_spec: bytes = b""
    choice_ending: str = ""
