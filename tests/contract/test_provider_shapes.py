"""What the fake providers answer is what the providers' own client libraries know."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from anthropic.types import Message, ModelInfo
from anthropic.types.shared import ErrorResponse
from ollama import ChatResponse, GenerateResponse, ListResponse, ShowResponse

from tests.fakes import anthropic_server, ollama_server


@pytest.mark.parametrize(
    "document",
    [
        anthropic_server.message("Seven."),
        anthropic_server.message("Seven.", thinking="Six comes before it."),
        anthropic_server.message("", stop_reason="max_tokens"),
        anthropic_server.refusal("To build one, first"),
    ],
)
def test_messages_are_those_of_anthropic(document: Mapping[str, object]) -> None:
    message = Message.model_validate(document)
    assert message.to_dict(mode="json", exclude_unset=True) == document


def test_models_and_errors_are_those_of_anthropic() -> None:
    assert ModelInfo.model_validate(anthropic_server.listed("claude-a")).max_input_tokens == 200000
    error = anthropic_server.error(429, "rate_limit_error", "slow down")
    assert ErrorResponse.model_validate(error.document).error.message == "slow down"


def test_answers_and_models_are_those_of_ollama() -> None:
    chat = ollama_server.chat_answer("Seven.", thinking="Six comes before it.")
    assert ChatResponse.model_validate(chat).model_dump(exclude_unset=True) == chat
    completion = ollama_server.completion_answer("Seven.")
    assert GenerateResponse.model_validate(completion).model_dump(exclude_unset=True) == completion
    [listed] = ListResponse.model_validate({"models": [ollama_server.tag("llama3.2:latest")]}).models
    assert (listed.model, listed.size) == ("llama3.2:latest", 1_321_098_329)
    assert ShowResponse.model_validate(ollama_server.shown("llama3.2:latest")).capabilities == ["completion"]
