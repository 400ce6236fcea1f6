"""A call of an agent's program, and the answer to it, whatever protocol the program speaks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from proctor.values.sample import ChatMessage
from proctor.values.usage import TokenUsage
from services.worker.engines.tool_calls import ToolCall

# A code of OpenAI's.
CONTEXT_FULL = "context_length_exceeded"


class CallRefused(Exception):
    """The call gets no answer; the message is one sentence for the program. `code` is as at OpenAI."""

    def __init__(self, status: int, sentence: str, code: str = "invalid_request_error") -> None:
        super().__init__(sentence)
        self.status = status
        self.code = code


@dataclass(frozen=True, slots=True)
class ModelCall:
    """`params` are named as in chat completions. `model`: as sent by the program; ignored."""

    messages: tuple[ChatMessage, ...]
    params: Mapping[str, object] = field(default_factory=dict)
    model: str = ""
    is_streamed: bool = False


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """`is_cut_off`: it reached the limit of its length."""

    text: str
    tool_calls: Sequence[ToolCall]
    usage: TokenUsage
    is_cut_off: bool = False
