"""Token counts of each provider, from the fields in which it reports them."""

import pytest

from proctor.values.usage import TokenUsage
from services.worker.engines.http.usage import openai_usage


def test_usage_has_cached_and_reasoning_tokens() -> None:
    usage = openai_usage(
        {
            "usage": {
                "prompt_tokens": 9,
                "completion_tokens": 5,
                "prompt_tokens_details": {"cached_tokens": 4},
                "completion_tokens_details": {"reasoning_tokens": 3},
            }
        }
    )
    assert usage == TokenUsage(9, 5, 4, 3)


@pytest.mark.parametrize(("completion", "total"), [(9, 135), (103, 135)])
def test_reasoning_counts_as_completion_also_where_the_server_separates_it(
    completion: int, total: int
) -> None:
    """With 94 tokens of reasoning: xAI's 9 is the answer alone, OpenAI's 103 would be all of it."""
    details = {"completion_tokens_details": {"reasoning_tokens": 94}}
    usage = {"prompt_tokens": 32, "completion_tokens": completion, "total_tokens": total, **details}
    assert openai_usage({"usage": usage}) == TokenUsage(32, 103, 0, 94)


def test_reasoning_may_be_counted_beside_the_others() -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 50, "total_tokens": 55, "reasoning_tokens": 40}
    assert openai_usage({"usage": usage}) == TokenUsage(5, 50, 0, 40)


def test_usage_may_be_missing() -> None:
    assert openai_usage({"usage": None}) == TokenUsage()


def test_odd_details_of_usage_are_not_counted() -> None:
    usage = {"prompt_tokens": 9, "prompt_tokens_details": [4], "completion_tokens_details": "none"}
    assert openai_usage({"usage": usage}) == TokenUsage(prompt_tokens=9)


def test_more_tokens_than_any_answer_has_are_not_counted() -> None:
    usage = {"prompt_tokens": 2**63 - 1, "completion_tokens": 3}
    assert openai_usage({"usage": usage}) == TokenUsage(completion_tokens=3)
