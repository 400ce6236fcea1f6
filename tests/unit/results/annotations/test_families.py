"""Which judges are of the judged model's family."""

import pytest

from services.results.annotations.show_panel import is_own_family


@pytest.mark.parametrize(
    ("judge", "judged", "is_own"),
    [
        ("openai/gpt-4.1", "openai/o3", True),
        ("vllm/Qwen/Qwen3-8B", "ollama/qwen2.5:7b", True),
        ("vllm/Qwen/Qwen3-8B", "vllm/meta-llama/Llama-3.1-8B", False),
        ("anthropic/claude-opus-4", "openai/gpt-4.1", False),
        ("vllm/4o", "vllm/4o-mini", False),
        ("openai/gpt-4.1", "", False),
    ],
)
def test_one_maker_or_one_first_word_is_a_family(judge: str, judged: str, *, is_own: bool) -> None:
    assert is_own_family(judge, judged) is is_own
