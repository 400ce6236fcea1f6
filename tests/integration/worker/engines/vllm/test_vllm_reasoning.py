"""Reasoning as vLLM's parsers find it, on the real engine `vllm`; judged here is what was seen."""

from typing import Any

import pytest


@pytest.fixture(scope="session")
def thought(seen: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = seen["rows"]["thought"]
    return found


@pytest.mark.parametrize(
    ("case", "text", "reasoning"),
    [
        ("apart", "Paris", "Is it London?"),
        ("unended", "", "Is it London?"),
        ("thinking", "Paris", "Is it London?"),
        ("not thinking", "Paris", ""),
        ("by its tokens", "Paris", "Is it London?"),
        ("channels", "<|channel|>final<|message|>Paris", ""),
    ],
)
def test_reasoning_is_read_by_the_parser_of_the_model(
    seen: dict[str, Any], case: str, text: str, reasoning: str
) -> None:
    """The pools file names it, vLLM knows it, or the tokens show it. That of gpt-oss leaves the text."""
    read = seen["reasoning"][case]
    assert (read["text"], read["reasoning"]) == (text, reasoning)
    assert read["special"] == (case not in ("apart", "unended"))


def test_a_parser_can_be_turned_off(seen: dict[str, Any]) -> None:
    assert seen["reasoning"]["turned off"] is None


def test_a_parser_that_cannot_read_a_model_is_refused(seen: dict[str, Any]) -> None:
    assert "reasoning parser hf cannot read the model vllm/x" in seen["reasoning"]["no template"]


def test_a_parser_that_fails_on_an_answer_fails_this_answer_alone(seen: dict[str, Any]) -> None:
    problem = "IndexError: no such token"
    assert f"reasoning parser qwen3 failed on the answer ({problem})" in seen["reasoning"]["broken"]


def test_answers_to_chats_have_their_reasoning_beside_them(thought: dict[str, Any]) -> None:
    text, reasoning = thought["plain"]
    assert text
    assert not reasoning
    assert thought["thought"] == ["", text]
    assert all(not message["content"] and message["reasoning_content"] for message in thought["several"])


def test_continued_texts_and_constrained_answers_have_none(thought: dict[str, Any]) -> None:
    assert thought["continued"] == ""
    assert thought["chosen"] == ["seven", ""]


def test_the_engine_reports_what_else_makes_its_answers(thought: dict[str, Any]) -> None:
    facts = thought["facts"]
    assert facts["reasoning_parser"] == "deepseek_r1"
    assert len(facts["chat_template"]) == 12
    assert "quantization" not in facts
