"""The times of an answer: the first token, and the mean between those after it."""

from __future__ import annotations

import pytest

from services.worker.engines import engine
from services.worker.engines.http.responses import HttpAnswer


def timing(answer: HttpAnswer, tokens: int, thought: int = 0) -> engine.Timing:
    usage = engine.Usage(completion_tokens=tokens, reasoning_tokens=thought)
    return answer.timed(engine.Generated("seven", "stop", usage, engine.Timing())).timing


def test_between_tokens_is_the_mean_after_the_first() -> None:
    assert timing(HttpAnswer({}, 1.5, 0.5), 11) == engine.Timing(None, 0.5, 0.1, 1.5)


@pytest.mark.parametrize("tokens", [0, 1])
def test_one_token_has_nothing_between(tokens: int) -> None:
    assert timing(HttpAnswer({}, 1.5, 0.5), tokens).between_tokens_seconds is None


def test_unstreamed_answer_tells_only_how_long_it_took() -> None:
    assert timing(HttpAnswer({}, 1.5), 11) == engine.Timing(total_seconds=1.5)


def test_thoughts_that_nobody_saw_come_before_the_first_token() -> None:
    assert timing(HttpAnswer({}, 1.5, 0.5), 111, 100).between_tokens_seconds == pytest.approx(0.1)
    shown = HttpAnswer({}, 1.5, 0.5, shows_thoughts=True)
    assert timing(shown, 111, 100).between_tokens_seconds == pytest.approx(1 / 110)
