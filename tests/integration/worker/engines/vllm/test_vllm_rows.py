"""Rows of data sets on the real engine `vllm`; the Python that has vLLM runs `vllm_rows_program.py`."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.integration.worker.engines.vllm.test_vllm_engine import LIMIT_SECONDS, REPOSITORY, VLLM_PYTHON

PROGRAM = Path(__file__).with_name("vllm_rows_program.py")
OWN_LENGTH = 5

pytestmark = pytest.mark.skipif(
    not VLLM_PYTHON.exists(), reason=f"no Python with vLLM: PROCTOR_VLLM_PYTHON is not set, no {VLLM_PYTHON}"
)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    ended = subprocess.run(
        [str(VLLM_PYTHON), str(PROGRAM), str(tmp_path_factory.mktemp("vllm") / "models")],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    observed: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return observed


def test_unset_parameters_are_those_of_the_model_itself(seen: dict[str, Any]) -> None:
    """As `vllm serve` does it: the model's generation_config limits the answer."""
    assert (seen["open"], seen["own"], seen["still"]) == (OWN_LENGTH, 3, OWN_LENGTH)


def test_prompt_that_is_cut_leaves_room_for_an_answer_of_no_set_length(seen: dict[str, Any]) -> None:
    assert seen["cut"] == 2048 - 256


def test_answer_that_is_one_text_has_no_body(seen: dict[str, Any]) -> None:
    assert seen["plain_body"] == ""


def test_several_answers_come_in_the_form_of_the_protocol(seen: dict[str, Any]) -> None:
    body = seen["several"]
    assert body["object"] == "chat.completion"
    assert [choice["index"] for choice in body["choices"]] == [0, 1, 2]
    assert all(choice["message"]["role"] == "assistant" for choice in body["choices"])
    usage = body["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]


def test_log_probabilities_of_a_chat_come_token_by_token(seen: dict[str, Any]) -> None:
    (choice,) = seen["chat_logprobs"]["choices"]
    reported = choice["logprobs"]["content"]
    assert "".join(each["token"] for each in reported).startswith(choice["message"]["content"])
    assert all(2 <= len(each["top_logprobs"]) <= 3 and each["logprob"] <= 0 for each in reported)


def test_log_probabilities_of_a_text_come_in_columns(seen: dict[str, Any]) -> None:
    reported = seen["text_logprobs"]["choices"][0]["logprobs"]
    lengths = {len(reported[name]) for name in ("tokens", "token_logprobs", "top_logprobs", "text_offset")}
    assert lengths == {seen["text_logprobs"]["usage"]["completion_tokens"]}


def test_parameters_of_the_protocol_hold(seen: dict[str, Any]) -> None:
    # A weak model goes on with white space in an object for ever.
    assert seen["schema"].startswith("{")
    assert seen["chosen"] == "seven"
    assert len(set(seen["biased"])) == 1


def test_parts_of_text_are_joined_and_calls_reach_the_template(seen: dict[str, Any]) -> None:
    assert seen["parts"] == seen["joined"]
    assert seen["called"] == 2


def test_a_call_of_a_tool_is_read_by_the_parser_of_its_model(seen: dict[str, Any]) -> None:
    assert (seen["tool_call"]["text"], seen["tool_call"]["finish_reason"]) == ("", "tool_calls")
    [choice] = json.loads(seen["tool_call"]["body"])["choices"]
    [call] = choice["message"]["tool_calls"]
    assert (call["function"]["name"], json.loads(call["function"]["arguments"])) == ("f", {"a": 1})
    assert "<tool_call>" in seen["no_tool_call"]["text"]
    assert seen["no_tool_call"]["body"] == ""


def test_what_the_engine_cannot_do_is_refused_in_one_sentence(seen: dict[str, Any]) -> None:
    assert "Message 1 of the line holds an image, which the vLLM engine cannot read" in seen["image"]["says"]
    for name, refusal in seen["refused"].items():
        assert refusal["type"] == "RequestRefused", name
        assert "\n" not in refusal["says"]
    assert "takes no tool_choice but auto and none" in seen["refused"]["tools"]["says"]
    assert "leave out n" in seen["refused"]["tools_n"]["says"]
    assert "takes no tools: its tool_parser is not set" in seen["no_parser"]["says"]
    assert "no_such" in seen["refused"]["unknown"]["says"]
    assert "stop_token_ids" in seen["refused"]["kind"]["says"]
    assert "response_format" in seen["refused"]["form"]["says"]
