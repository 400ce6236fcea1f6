"""The times of an answer: the first token, and the mean between those after it."""

import pytest

from proctor.values.usage import Timing, TokenUsage
from services.worker.engines.http.responses import HttpResponse


def timing(answer: HttpResponse, tokens: int, thought: int = 0) -> Timing:
    usage = TokenUsage(completion_tokens=tokens, reasoning_tokens=thought)
    return answer.timing(usage)


def test_between_tokens_is_the_mean_after_the_first() -> None:
    assert timing(HttpResponse({}, 1.5, 0.5), 11) == Timing(1.5, None, 0.5, 0.1)


@pytest.mark.parametrize("tokens", [0, 1])
def test_one_token_has_nothing_between(tokens: int) -> None:
    assert timing(HttpResponse({}, 1.5, 0.5), tokens).between_tokens_seconds is None


def test_unstreamed_answer_has_only_its_total_time() -> None:
    assert timing(HttpResponse({}, 1.5), 11) == Timing(total_seconds=1.5)


def test_hidden_reasoning_comes_before_the_first_token() -> None:
    assert timing(HttpResponse({}, 1.5, 0.5), 111, 100).between_tokens_seconds == pytest.approx(0.1)
    shown = HttpResponse({}, 1.5, 0.5, streams_reasoning=True)
    assert timing(shown, 111, 100).between_tokens_seconds == pytest.approx(1 / 110)
