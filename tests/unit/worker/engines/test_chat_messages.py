"""Messages with more than a text go on whole, as text, or not at all."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from proctor.values.sample import ChatMessage, Prompt
from services.worker.engines.anthropic import api as anthropic
from services.worker.engines.chat_messages import message_objects, templated_objects
from services.worker.engines.chat_turns import Turn, split_system, turns_of, with_results_joined
from services.worker.engines.errors import RequestRefused
from services.worker.engines.gemini import api as gemini

CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
TEXTS = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]


def message(content: str = "", role: str = "user", **fields: Any) -> ChatMessage:
    return ChatMessage(role, content, json.dumps(fields))


def with_parts(*parts: dict[str, Any]) -> ChatMessage:
    return ChatMessage("user", "a", json.dumps({"content": parts}))


def test_protocol_gets_a_message_as_it_came() -> None:
    messages = [ChatMessage("user", "Hi"), message("", "assistant", tool_calls=[CALL]), with_parts(*TEXTS)]
    assert message_objects(messages) == [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        {"role": "user", "content": TEXTS},
    ]


def test_parts_of_text_are_one_text_for_others() -> None:
    (turn,) = turns_of([with_parts(*TEXTS)], "Ollama")
    assert (turn.role, turn.content) == ("user", "a")
    said = [{"role": "user", "content": "a"}]
    assert templated_objects([with_parts(*TEXTS)], "the vLLM engine") == said


@pytest.mark.parametrize(
    ("kind", "called"),
    [("image_url", "an image"), ("input_audio", "a sound"), ("file", "a file"), ("x", "a part of type x")],
)
def test_what_is_no_text_is_refused_by_its_name(kind: str, called: str) -> None:
    messages = [ChatMessage("system", "Be brief."), with_parts(TEXTS[0], {"type": kind})]
    said = f"^Message 2 of the line holds {called}, which Gemini cannot read.$"
    with pytest.raises(RequestRefused, match=said):
        turns_of(messages, "Gemini")
    with pytest.raises(RequestRefused, match=called):
        templated_objects(messages, "the vLLM engine")


@pytest.mark.parametrize("content", [{"type": "image_url"}, 5, True])
def test_content_that_is_neither_text_nor_parts_is_refused(content: object) -> None:
    with pytest.raises(RequestRefused, match="must be a text or a list of parts"):
        message_objects([ChatMessage("user", "", json.dumps({"content": content}))])


def test_fields_of_a_message_are_refused_where_only_text_goes() -> None:
    with pytest.raises(RequestRefused, match="Message 1 of the line has name, which Anthropic does not take"):
        turns_of([message("Hi", name="Ann")], "Anthropic")
    assert turns_of([message("Hi", refusal=None, tool_calls=[])], "Anthropic")


def test_template_gets_the_arguments_of_a_call_as_an_object() -> None:
    broken = {"id": "d", "type": "function", "function": {"name": "f", "arguments": "{"}}
    (turn,) = templated_objects([message("", "assistant", tool_calls=[CALL, broken], name="x")], "vLLM")
    first, second = turn["tool_calls"]
    assert first["function"] == {"name": "f", "arguments": {"a": 1}}
    assert second == broken
    assert turn["name"] == "x"


def test_developer_messages_are_system_messages() -> None:
    turns = [Turn("developer", "Be brief."), Turn("user", "Hi")]
    assert split_system(turns) == ("Be brief.", (turns[1],))


@pytest.mark.parametrize("prompt_fields", [anthropic.prompt_fields, gemini.prompt_fields])
def test_an_image_beside_the_system_prompt_is_refused_and_not_left_out(
    prompt_fields: Callable[[Prompt], object],
) -> None:
    hidden = ChatMessage("system", "a", json.dumps({"content": [*TEXTS, {"type": "image_url"}]}))
    with pytest.raises(RequestRefused, match=r"^Message 1 of the line holds an image"):
        prompt_fields(Prompt(messages=(hidden, ChatMessage("user", "Hi"))))
    later = (ChatMessage("system", "Be brief."), ChatMessage("user", "Hi"), with_parts({"type": "file"}))
    with pytest.raises(RequestRefused, match=r"^Message 3 of the line holds a file"):
        prompt_fields(Prompt(messages=later))


def test_results_of_one_answer_are_together() -> None:
    turns = [Turn(role, str(number)) for number, role in enumerate(("user", "tool", "tool", "user", "tool"))]
    together = ["".join(turn.content for turn in each) for each in with_results_joined(turns)]
    assert together == ["0", "12", "3", "4"]


def test_no_server_fetches_an_address_for_a_row() -> None:
    image = {"type": "image_url", "image_url": {"url": "http://169.254.169.254/latest"}}
    with pytest.raises(RequestRefused, match="no server fetches an address"):
        message_objects([with_parts(TEXTS[0], image)])
