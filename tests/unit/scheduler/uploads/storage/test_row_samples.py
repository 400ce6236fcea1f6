"""Rows of data sets as samples: what is asked, by which parameters, and what names them across files."""

import json

import orjson
import pytest

from proctor.values.sample import ChatMessage, Prompt
from services.scheduler.suites.rendering.sample import RenderedSample
from services.scheduler.uploads.storage.row_sample import sample_of_line

USER = {"role": "user", "content": "One and one?"}


def row_of(body: dict[str, object], **known: object) -> RenderedSample:
    return sample_of_line(7, json.dumps({"id": "r7", "body": body, **known}).encode())


def chat_of(*messages: object, **params: object) -> RenderedSample:
    return row_of({"model": "m", "messages": list(messages), **params})


def test_prompt_is_asked_as_it_is() -> None:
    sample = row_of({"prompt": "Übung: "}, target="ja", metadata={"level": 1})
    assert (sample.prompt, sample.choices) == (Prompt("Übung: "), ())
    assert sample.target.texts == ("ja",)
    assert (sample.position, sample.doc_id, sample.row_id) == (7, 7, "r7")
    assert json.loads(sample.doc_json) == {"level": 1}
    assert sample.params_json == ""
    assert sample.size_bytes < sample.stored_bytes


def test_row_without_target_and_metadata_has_none() -> None:
    sample = row_of({"prompt": "x"})
    assert (sample.target.texts, sample.doc_json) == ((), "")


def test_empty_target_is_a_target() -> None:
    assert row_of({"prompt": "x"}, target="").target.texts == ("",)


def test_turns_of_a_chat_are_kept_in_order() -> None:
    sample = chat_of({"role": "system", "content": "Add."}, USER)
    assert sample.prompt.messages == (ChatMessage("system", "Add."), ChatMessage("user", "One and one?"))
    assert sample.prompt.text is None


def test_parameters_are_all_of_the_body_but_what_is_asked_whom_and_how_it_comes_back() -> None:
    options = {"include_usage": True}
    sample = chat_of(
        USER, temperature=0, max_tokens=4, stream=False, stream_options=options, a={"z": 1, "b": 2}
    )
    assert sample.params_json == '{"a":{"b":2,"z":1},"max_tokens":4,"temperature":0}'


PARTS = [
    {"type": "text", "text": "What is"},
    {"type": "image_url", "image_url": {"url": "https://x/y.png"}},
    {"type": "text", "text": "this?"},
]
CALLS = [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}]


@pytest.mark.parametrize(
    ("message", "text", "fields"),
    [
        ({"role": "user", "content": PARTS}, "What is\nthis?", {"content": PARTS}),
        ({"role": "user", "content": "Hi", "name": "ann"}, "Hi", {"name": "ann"}),
        (
            {"role": "assistant", "content": None, "tool_calls": CALLS},
            "",
            {"content": None, "tool_calls": CALLS},
        ),
        ({"role": "assistant", "tool_calls": CALLS}, "", {"content": None, "tool_calls": CALLS}),
        ({"role": "tool", "tool_call_id": "c1", "content": "2"}, "2", {"tool_call_id": "c1"}),
        ({"role": "assistant", "content": "Hi", "audio": None}, "Hi", {"audio": None}),
    ],
)
def test_message_keeps_its_text_and_all_else_that_it_has(
    message: dict[str, object], text: str, fields: dict[str, object]
) -> None:
    [turn] = chat_of(message).prompt.messages
    assert (turn.role, turn.content) == (message["role"], text)
    assert json.loads(turn.fields_json) == fields
    merged = {"role": turn.role, "content": turn.content, **json.loads(turn.fields_json)}
    assert merged == {"content": None, **message}


def test_digest_is_of_request_and_target_whatever_the_id_the_position_and_the_order_of_keys() -> None:
    first = row_of({"messages": [USER], "temperature": 0, "seed": 1}, target="two", metadata={"a": 1})
    same = {
        "target": "two",
        "id": "other",
        "body": {
            "seed": 1,
            "temperature": 0,
            "model": "x",
            "messages": [{"content": "One and one?", "role": "user"}],
        },
    }
    assert sample_of_line(0, json.dumps(same).encode()).digest == first.digest


def test_digest_distinguishes_what_would_be_asked_or_expected_otherwise() -> None:
    others = [
        row_of({"prompt": "One and one?"}),
        row_of({"prompt": "One and one?"}, target=""),
        row_of({"prompt": "One and one?"}, target="two"),
        row_of({"prompt": "One and one?", "seed": 1}),
        row_of({"prompt": "One and one?", "seed": 2}),
        chat_of(USER),
        chat_of({**USER, "name": "ann"}),
        chat_of({"role": "system", "content": "One and one?"}),
        chat_of(USER, USER),
        chat_of({"role": "user", "content": [{"type": "text", "text": "One and one?"}]}),
    ]
    assert len({sample.digest for sample in others}) == len(others)


def test_prompt_that_reads_like_messages_is_another_sample() -> None:
    written = orjson.dumps([USER], option=orjson.OPT_SORT_KEYS).decode()
    assert row_of({"prompt": written}).digest != row_of({"messages": [USER]}).digest


def test_text_of_parts_weighs_twice_since_it_travels_twice() -> None:
    text = "x" * 1000
    plain = chat_of({"role": "user", "content": text})
    parts = chat_of({"role": "user", "content": [{"type": "text", "text": text}]})
    assert parts.size_bytes > plain.size_bytes + 1000
