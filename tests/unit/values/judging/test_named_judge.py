"""Judges as options write them: a model, its prompt, and the scale."""

import pytest

from proctor.values.judging.named_judge import NamedJudge, judge_in_words, read_judge


@pytest.mark.parametrize(
    ("text", "judge"),
    [
        ("openai/gpt-4.1", NamedJudge("openai/gpt-4.1")),
        ("openai/gpt-4.1:style", NamedJudge("openai/gpt-4.1", "style")),
        ("openai/gpt-4.1@1-5", NamedJudge("openai/gpt-4.1", scale="1-5")),
        ("openai/gpt-4.1:style@yes-no", NamedJudge("openai/gpt-4.1", "style", "yes-no")),
        ("a/b:style@labels:good=1,@yes-no=0", NamedJudge("a/b", "style", "labels:good=1,@yes-no=0")),
        # Models of Ollama and of Vertex.
        ("ollama/llama3.2:1b:correctness", NamedJudge("ollama/llama3.2:1b", "correctness")),
        ("litellm/sonnet@20240620:style", NamedJudge("litellm/sonnet@20240620", "style")),
        ("litellm/sonnet@20240620@1-3", NamedJudge("litellm/sonnet@20240620", scale="1-3")),
    ],
)
def test_what_is_read_is_written_so_again(text: str, judge: NamedJudge) -> None:
    assert read_judge(text) == judge
    assert judge_in_words(judge.model, judge.prompt, judge.scale) == text


def test_a_model_with_a_colon_is_written_with_its_prompt() -> None:
    assert read_judge(judge_in_words("ollama/a:1b", "", "1-5")) == NamedJudge(
        "ollama/a:1b", "correctness", "1-5"
    )


@pytest.mark.parametrize("text", ["", ":style", "a/b:", "a/b:@1-5"])
def test_what_names_no_model_or_no_prompt_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="write it as MODEL, MODEL:PROMPT or MODEL:PROMPT@SCALE"):
        read_judge(text)
