"""The model of a rollout, as its agent asks it."""

from typing import Protocol

from proctor.values.sample import ChatMessage
from services.worker.engines.engine import Generated


class ContextFull(Exception):
    """The conversation is longer than the model's context window."""


class AskModel(Protocol):
    async def __call__(self, messages: tuple[ChatMessage, ...]) -> Generated:
        """The next answer. Raises ContextFull; whatever else it raises ends the rollout without a score."""
        ...
