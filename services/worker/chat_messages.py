"""The messages of a chat in the forms that servers take them."""

from __future__ import annotations

from collections.abc import Sequence

from services.worker.engine import ChatMessage, Prompt, UnsupportedRequest


def message_objects(messages: Sequence[ChatMessage]) -> list[dict[str, object]]:
    return [{"role": each.role, "content": each.content} for each in messages]


def split_system(messages: Sequence[ChatMessage]) -> tuple[str, tuple[ChatMessage, ...]]:
    """The system's words, which some servers take apart from the turns, and the turns."""
    system = "\n\n".join(each.content for each in messages if each.role == "system")
    return system, tuple(each for each in messages if each.role != "system")


def require_chat(prompt: Prompt, provider: str) -> None:
    if not prompt.is_chat:
        raise UnsupportedRequest(
            f"{provider} answers chats and continues no plain text: order prompt_form chat."
        )
