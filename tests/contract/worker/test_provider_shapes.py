"""Answers of the fake providers are valid for the providers' own client libraries."""

from collections.abc import Mapping

import pytest
from anthropic.types import Message, ModelInfo, RawMessageStreamEvent
from anthropic.types.shared import ErrorResponse
from ollama import ChatResponse, GenerateResponse, ListResponse, ShowResponse
from openai.types import Completion
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from pydantic import TypeAdapter

from tests.fakes.providers import anthropic_server, ollama_server
from tests.fakes.providers.model_server import ModelServer, chat_answer, completion_answer
from tests.fakes.providers.streamed_answers import Json, anthropic_events, ollama_lines, openai_chunks


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


@pytest.mark.parametrize(
    "message",
    [
        anthropic_server.message("It is seven.", thinking="Six comes before it."),
        anthropic_server.message("", stop_reason="max_tokens"),
        anthropic_server.refusal("To build one, first"),
    ],
)
def test_events_are_those_of_anthropic(message: Json) -> None:
    """All but the ping, which its types leave out."""
    known: TypeAdapter[RawMessageStreamEvent] = TypeAdapter(RawMessageStreamEvent)
    for event in anthropic_events(message):
        if event["type"] != "ping":
            assert known.validate_python(event).to_dict(mode="json", exclude_unset=True) == event


@pytest.mark.parametrize("answer", [ollama_server.chat_answer("It is seven.", thinking="Six comes first.")])
def test_lines_of_a_chat_are_those_of_ollama(answer: Json) -> None:
    for line in ollama_lines(answer):
        assert ChatResponse.model_validate(line).model_dump(exclude_unset=True) == line


def test_lines_of_a_completion_are_those_of_ollama() -> None:
    for line in ollama_lines(ollama_server.completion_answer("It is seven.")):
        assert GenerateResponse.model_validate(line).model_dump(exclude_unset=True) == line


def test_chats_and_their_chunks_are_those_of_openai() -> None:
    answer = chat_answer({"model": "fake", "messages": [{"role": "user", "content": "KEY=seven"}]})
    assert ChatCompletion.model_validate(answer).to_dict(mode="json", exclude_unset=True) == answer
    for chunk in openai_chunks(answer):
        known = ChatCompletionChunk.model_validate(chunk)
        assert known.to_dict(mode="json", exclude_unset=True) == chunk


def test_completions_and_their_chunks_are_those_of_openai() -> None:
    answer = completion_answer(ModelServer(), {"model": "fake", "prompt": "KEY=seven"})
    assert Completion.model_validate(answer).to_dict(mode="json", exclude_unset=True) == answer
    for chunk in openai_chunks(answer):
        # A chunk before the last has no reason to finish, which the type of a whole completion wants.
        reported = {**chunk, "choices": [{**choice, "finish_reason": "stop"} for choice in chunk["choices"]]}
        assert Completion.model_validate(reported).to_dict(mode="json", exclude_unset=True) == reported
