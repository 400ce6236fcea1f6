"""Rows of data sets on the real engine `vllm`; judged here is what was seen."""

import json
from typing import Any

import pytest

OWN_LENGTH = 5


@pytest.fixture(scope="session")
def rows(seen: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = seen["rows"]
    return found


def test_unset_parameters_are_those_of_the_model_itself(rows: dict[str, Any]) -> None:
    """As `vllm serve` does it: the model's generation_config limits the answer."""
    assert (rows["open"], rows["own"], rows["still"]) == (OWN_LENGTH, 3, OWN_LENGTH)


def test_prompt_that_is_cut_leaves_room_for_an_answer_of_no_set_length(rows: dict[str, Any]) -> None:
    assert rows["cut"] == 2048 - 256


def test_answer_that_is_one_text_has_no_body(rows: dict[str, Any]) -> None:
    assert rows["plain_body"] == ""


def test_several_answers_come_in_the_form_of_the_protocol(rows: dict[str, Any]) -> None:
    body = rows["several"]
    assert body["object"] == "chat.completion"
    assert [choice["index"] for choice in body["choices"]] == [0, 1, 2]
    assert all(choice["message"]["role"] == "assistant" for choice in body["choices"])
    usage = body["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]


def test_log_probabilities_of_a_chat_come_token_by_token(rows: dict[str, Any]) -> None:
    (choice,) = rows["chat_logprobs"]["choices"]
    reported = choice["logprobs"]["content"]
    assert "".join(each["token"] for each in reported).startswith(choice["message"]["content"])
    assert all(2 <= len(each["top_logprobs"]) <= 3 and each["logprob"] <= 0 for each in reported)


def test_log_probabilities_of_a_text_come_in_columns(rows: dict[str, Any]) -> None:
    reported = rows["text_logprobs"]["choices"][0]["logprobs"]
    lengths = {len(reported[name]) for name in ("tokens", "token_logprobs", "top_logprobs", "text_offset")}
    assert lengths == {rows["text_logprobs"]["usage"]["completion_tokens"]}


def test_parameters_of_the_protocol_hold(rows: dict[str, Any]) -> None:
    # A weak model goes on with white space in an object for ever.
    assert rows["schema"].startswith("{")
    assert rows["chosen"] == "seven"
    assert len(set(rows["biased"])) == 1


def test_parts_of_text_are_joined_and_calls_reach_the_template(rows: dict[str, Any]) -> None:
    assert rows["parts"] == rows["joined"]
    assert rows["called"] == 2


def test_a_call_of_a_tool_is_read_by_the_parser_of_its_model(rows: dict[str, Any]) -> None:
    assert (rows["tool_call"]["text"], rows["tool_call"]["finish_reason"]) == ("", "tool_calls")
    [choice] = json.loads(rows["tool_call"]["body"])["choices"]
    [call] = choice["message"]["tool_calls"]
    assert (call["function"]["name"], json.loads(call["function"]["arguments"])) == ("f", {"a": 1})
    assert "<tool_call>" in rows["no_tool_call"]["text"]
    assert rows["no_tool_call"]["body"] == ""


def test_what_the_engine_cannot_do_is_refused_in_one_sentence(rows: dict[str, Any]) -> None:
    assert "Message 1 of the line holds an image, which the vLLM engine cannot read" in rows["image"]["says"]
    for name, refusal in rows["refused"].items():
        assert refusal["type"] == "RequestRefused", name
        assert "\n" not in refusal["says"]
    assert "takes no tool_choice but auto and none" in rows["refused"]["tools"]["says"]
    assert "leave out n" in rows["refused"]["tools_n"]["says"]
    assert "takes no tools: its tool_parser is not set" in rows["no_parser"]["says"]
    assert "no_such" in rows["refused"]["unknown"]["says"]
    assert "stop_token_ids" in rows["refused"]["kind"]["says"]
    assert "response_format" in rows["refused"]["form"]["says"]
