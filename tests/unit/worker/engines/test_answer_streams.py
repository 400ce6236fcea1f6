"""An answer that comes in many events is the very answer that comes as a whole, or none."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import pytest

from proctor.values.outcome import Answer
from services.worker.engines.anthropic import responses as anthropic_answers
from services.worker.engines.anthropic.responses import AnthropicStream
from services.worker.engines.engine import MAX_ANSWER_CHARACTERS
from services.worker.engines.errors import EngineFailure, ProviderFailed
from services.worker.engines.gemini import responses as gemini_answers
from services.worker.engines.gemini.responses import GeminiStream
from services.worker.engines.http.error_bodies import AnswerError
from services.worker.engines.http.event_stream import StreamEvent
from services.worker.engines.http.ports import AnswerStream, ReadAnswer
from services.worker.engines.ollama import responses as ollama_answers
from services.worker.engines.ollama.responses import OllamaStream
from services.worker.engines.openai import responses as openai_answers
from services.worker.engines.openai.responses import OpenAIStream
from tests.fakes.providers import anthropic_server, gemini_server, ollama_server
from tests.fakes.providers.model_server import ModelServer, chat_answer, completion_answer
from tests.fakes.providers.streamed_answers import (
    Json,
    anthropic_events,
    gemini_chunks,
    json_lines,
    named_events,
    ollama_lines,
    openai_body,
    server_sent,
)

SAID = "Sieben.  Or seven:\n\tit follows six 🍏."
THOUGHT = "Six comes before it."


@dataclass(frozen=True, slots=True)
class Protocol:
    make: Callable[[], AnswerStream]
    read: ReadAnswer
    body: Callable[[Json], bytes]


CHAT = Protocol(
    lambda: OpenAIStream(is_chat=True),
    lambda document: openai_answers.read_answer(document, is_chat=True),
    openai_body,
)
COMPLETION = Protocol(
    lambda: OpenAIStream(is_chat=False),
    lambda document: openai_answers.read_answer(document, is_chat=False),
    openai_body,
)
ANTHROPIC = Protocol(
    AnthropicStream,
    anthropic_answers.read_answer,
    lambda message: named_events(anthropic_events(message)),
)
GEMINI = Protocol(GeminiStream, gemini_answers.read_answer, lambda answer: server_sent(gemini_chunks(answer)))
OLLAMA_CHAT = Protocol(
    lambda: OllamaStream(is_chat=True),
    lambda document: ollama_answers.read_answer(document, is_json=False),
    lambda answer: json_lines(ollama_lines(answer)),
)
OLLAMA_COMPLETION = Protocol(
    lambda: OllamaStream(is_chat=False),
    lambda document: ollama_answers.read_answer(document, is_json=False),
    lambda answer: json_lines(ollama_lines(answer)),
)


def chat(finish_reason: str = "stop", **message: Any) -> Json:
    answer = chat_answer({"model": "fake", "messages": [{"role": "user", "content": "KEY=seven"}]})
    usage = {
        "prompt_tokens": 9,
        "completion_tokens": 12,
        "total_tokens": 21,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish_reason}
    return {**answer, "choices": [choice], "usage": usage}


def completion(text: str, finish_reason: str = "stop") -> Json:
    answer = completion_answer(ModelServer(), {"model": "fake", "prompt": "KEY=seven"})
    return {**answer, "choices": [{"index": 0, "text": text, "finish_reason": finish_reason}]}


CALL = {"id": "call_1", "type": "function", "function": {"name": "count", "arguments": "{}"}}
ANSWERS = {
    "chat": (CHAT, chat(content=SAID)),
    "chat that ran out": (CHAT, chat("length", content=SAID)),
    "chat without words": (CHAT, chat(content="")),
    "chat that thought": (CHAT, chat(content=SAID, reasoning_content=THOUGHT)),
    "chat that calls a tool": (CHAT, chat("tool_calls", content=None, tool_calls=[CALL])),
    "chat that refuses": (CHAT, chat(content=None, refusal="I had rather not.")),
    "chat that says nothing at all": (CHAT, chat("", content=None)),
    "chat that was filtered": (CHAT, chat("content_filter", content="To build one,")),
    "completion": (COMPLETION, completion(SAID)),
    "completion without words": (COMPLETION, completion("")),
    "completion that was filtered": (COMPLETION, completion("To", "content_filter")),
    "anthropic": (ANTHROPIC, anthropic_server.message(SAID)),
    "anthropic that thought": (ANTHROPIC, anthropic_server.message(SAID, thinking=THOUGHT)),
    "anthropic that ran out": (ANTHROPIC, anthropic_server.message("", stop_reason="max_tokens")),
    "anthropic that refuses": (ANTHROPIC, anthropic_server.refusal("To build one,")),
    "anthropic that counts all": (
        ANTHROPIC,
        anthropic_server.message(
            SAID,
            usage={
                "input_tokens": 3,
                "output_tokens": 8,
                "cache_read_input_tokens": 5,
                "cache_creation_input_tokens": 2,
            },
        ),
    ),
    "gemini": (GEMINI, gemini_server.answer(SAID)),
    "gemini that thought": (GEMINI, gemini_server.answer(SAID, thought=THOUGHT)),
    "gemini without words": (GEMINI, gemini_server.answer("")),
    "gemini that ran out": (GEMINI, gemini_server.answer(SAID, finish_reason="MAX_TOKENS")),
    "gemini that was filtered": (GEMINI, gemini_server.answer("To", finish_reason="SAFETY")),
    "gemini that failed": (GEMINI, gemini_server.answer("", finish_reason="OTHER")),
    "gemini whose prompt was blocked": (GEMINI, gemini_server.blocked_prompt("SAFETY")),
    "ollama chat": (OLLAMA_CHAT, ollama_server.chat_answer(SAID)),
    "ollama chat that thought": (OLLAMA_CHAT, ollama_server.chat_answer(SAID, thinking=THOUGHT)),
    "ollama completion": (OLLAMA_COMPLETION, ollama_server.completion_answer(SAID, done_reason="length")),
}


def outcome_of(read: ReadAnswer, document: Json) -> tuple[object, object]:
    try:
        return read(document)
    except EngineFailure as failure:
        return type(failure), str(failure)


def events_of(protocol: Protocol, body: bytes) -> list[StreamEvent]:
    reader = protocol.make().reader
    return [*reader.feed(body), *reader.feed(b"\n\n")]


def added(protocol: Protocol, events: Sequence[StreamEvent]) -> AnswerStream:
    stream = protocol.make()
    for event in events:
        stream.add(event)
    return stream


@pytest.mark.parametrize(("protocol", "answer"), ANSWERS.values(), ids=ANSWERS)
def test_streamed_answer_is_the_unstreamed_one(protocol: Protocol, answer: Json) -> None:
    stream = added(protocol, events_of(protocol, protocol.body(answer)))
    unstreamed = outcome_of(protocol.read, answer)
    assert outcome_of(protocol.read, stream.document()) == unstreamed
    assert stream.is_whole or not isinstance(unstreamed[0], Answer)


@pytest.mark.parametrize(("protocol", "answer"), ANSWERS.values(), ids=ANSWERS)
def test_no_part_of_an_answer_is_taken_for_the_whole(protocol: Protocol, answer: Json) -> None:
    events = events_of(protocol, protocol.body(answer))
    for count in range(len(events)):
        assert not added(protocol, events[:count]).is_whole, events[:count]


@pytest.mark.parametrize(
    ("name", "streams_reasoning"),
    [("chat", False), ("chat that thought", True), ("anthropic that thought", True),
     ("gemini that thought", True), ("ollama chat that thought", True)],
)  # fmt: skip
def test_an_answer_begins_with_its_first_token_or_reasoning(name: str, *, streams_reasoning: bool) -> None:
    protocol, answer = ANSWERS[name]
    events = events_of(protocol, protocol.body(answer))
    begun = [added(protocol, events[:count]).text.has_begun for count in range(len(events) + 1)]
    assert begun[0] is False
    assert begun[-1] is True
    first = events[begun.index(True) - 1].data.decode()
    assert (THOUGHT if streams_reasoning else SAID).split()[0] in first
    assert added(protocol, events).text.reasoning == (THOUGHT if streams_reasoning else "")


@pytest.mark.parametrize(
    ("protocol", "body", "status"),
    [
        (CHAT, b'data: {"error": {"message": "broken", "type": "server_error", "code": null}}', 500),
        (CHAT, b'data: {"error": {"message": "broken", "type": "InternalServerError", "code": 503}}', 503),
        (CHAT, b'data: {"error": {"message": "slow down", "code": "rate_limit_exceeded"}}', 429),
        (CHAT, b'data: {"error": {"message": "filtered", "code": "content_filter"}}', 400),
        (CHAT, b'data: {"error": {"message": "slow down", "code": "429"}}', 429),
        (CHAT, b'data: {"error": {"message": "no status", "code": "4290"}}', 500),
        (CHAT, b'event: error\ndata: {"message": "broken"}', 500),
        (CHAT, b'event: error\ndata: {"message": "Payment Required"}', 402),
        (CHAT, b'data: {"error": {"message": "no", "status": 402}, "choices": []}', 402),
        (CHAT, b'data: {"object": "error", "message": "too long", "code": 400}', 400),
        (CHAT, b'data: {"error": "out of memory", "error_type": "generation"}', 500),
        (ANTHROPIC, b'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error"}}', 529),
        (ANTHROPIC, b'event: error\ndata: {"type": "error", "error": {"type": "rate_limit_error"}}', 429),
        (ANTHROPIC, b'event: error\ndata: {"type": "error", "error": {"type": "new_error"}}', 500),
        (GEMINI, b'data: {"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}}', 503),
        (GEMINI, b'data: {"error": {"code": 7, "message": "no status of HTTP"}}', 500),
        (GEMINI, b'data: {"error": {"code": "503", "message": "overloaded"}}', 503),
        (OLLAMA_CHAT, b'{"error": "llama runner process has terminated"}', 500),
    ],
)
def test_error_in_the_middle_stands_for_a_status(protocol: Protocol, body: bytes, status: int) -> None:
    [event] = events_of(protocol, body)
    with pytest.raises(AnswerError) as broken:
        added(protocol, [event])
    assert broken.value.status == status
    assert orjson.loads(broken.value.body) == orjson.loads(event.data)
    assert broken.value.is_midway


@pytest.mark.parametrize("protocol", [CHAT, COMPLETION, ANTHROPIC, GEMINI, OLLAMA_CHAT, OLLAMA_COMPLETION])
@pytest.mark.parametrize("data", [b'{"choices": [', b"[]", b"Service Unavailable"])
def test_event_that_cannot_be_read_is_the_servers_failure(protocol: Protocol, data: bytes) -> None:
    with pytest.raises(ProviderFailed):
        added(protocol, [StreamEvent(data)])


@pytest.mark.parametrize("protocol", [CHAT, COMPLETION, ANTHROPIC, GEMINI, OLLAMA_CHAT, OLLAMA_COMPLETION])
@pytest.mark.parametrize("data", [b"{}", b'{"choices": 3, "candidates": [{"content": 3}], "message": "?"}'])
def test_event_of_an_unknown_shape_is_skipped(protocol: Protocol, data: bytes) -> None:
    stream = added(protocol, [StreamEvent(data)])
    assert not stream.text.has_begun
    assert not stream.is_whole


def test_an_answer_in_one_piece_is_read_and_one_that_repeats_its_deltas_is_not() -> None:
    whole = StreamEvent(b'{"choices": [{"message": {"content": "Bergen"}, "finish_reason": "stop"}]}')
    part = StreamEvent(b'{"choices": [{"delta": {"content": "Bergen"}, "finish_reason": null}]}')
    for events in ([whole], [part, whole]):
        stream = OpenAIStream(is_chat=True)
        for event in events:
            stream.add(event)
        [choice] = stream.document()["choices"]
        assert choice == {"message": {"content": "Bergen"}, "finish_reason": "stop"}


def test_other_choices_than_the_first_are_passed_over() -> None:
    stream = OpenAIStream(is_chat=False)
    stream.add(StreamEvent(b'{"choices": [{"index": 1, "text": "no"}, {"index": 0, "text": "yes"}]}'))
    assert stream.document()["choices"] == [{"text": "yes"}]


def test_text_beyond_the_longest_answer_is_dropped_and_refused() -> None:
    stream, chunk = OpenAIStream(is_chat=False), "x" * 100_000
    event = StreamEvent(b'{"choices": [{"text": "' + chunk.encode() + b'"}]}')
    for _ in range(3 * MAX_ANSWER_CHARACTERS // len(chunk)):
        stream.add(event)
    [choice] = stream.document()["choices"]
    assert MAX_ANSWER_CHARACTERS < len(choice["text"]) <= MAX_ANSWER_CHARACTERS + len(chunk)
