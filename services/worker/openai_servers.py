"""What is known of a server behind the OpenAI protocol by its host; of any other, only the protocol."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

# Many servers behind the protocol take more than the two that are known here document.
_STRICT = ("top_k", "repetition_penalty", "context_tokens")


@dataclass(frozen=True, slots=True)
class OpenAIServer:
    """`name` as people write it; `unknown` are the parameters of a run that it does not take."""

    name: str
    unknown: tuple[str, ...] = ("context_tokens",)
    needs_key: bool = False
    # The field that limits the answer to a chat; to a plain text it is max_tokens everywhere.
    chat_limit: str = "max_tokens"


ANY_SERVER = OpenAIServer("A server behind the OpenAI protocol")
# OpenAI's reasoning models refuse max_tokens, and its other models take the newer field as well.
OPENAI = OpenAIServer("OpenAI", _STRICT, needs_key=True, chat_limit="max_completion_tokens")
_SERVERS = {"api.openai.com": OPENAI, "api.x.ai": OpenAIServer("xAI", _STRICT, needs_key=True)}


def server_at(base_url: str) -> OpenAIServer:
    return _SERVERS.get(urlsplit(base_url).hostname or "", ANY_SERVER)
