"""The protocols that programs speak."""

from collections.abc import Sequence
from typing import Protocol

from proctor.values.plain import Json
from services.worker.rollouts.model_port.model_call import CallRefused, ModelAnswer, ModelCall

# An event of a stream: its name, empty for none, and its data.
Event = tuple[str, Json | str]


class ModelProtocol(Protocol):
    """A protocol of programs. Answers come whole, so a stream has few events."""

    def read(self, body: Json, path: str) -> ModelCall:
        """Raises CallRefused."""
        ...

    def answer(self, call: ModelCall, answer: ModelAnswer) -> Json: ...

    def events(self, call: ModelCall, answer: ModelAnswer) -> Sequence[Event]: ...

    def error(self, refused: CallRefused) -> Json: ...
