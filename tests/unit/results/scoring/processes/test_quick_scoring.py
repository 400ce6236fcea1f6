"""Answers that are scored in the service's own loop hold it for milliseconds, however many there are."""

import json
import math

import pytest

from proctor.values.outcome import Answer
from proctor.values.scoring import MetricUse, OutputType, TaskScoring
from services.results.scoring import score_answer
from services.results.scoring.compiled_scoring import CompiledScoring, compile_scoring
from services.results.scoring.ports import AnswerToScore, Scored, UncompiledScoring
from services.results.scoring.score import Score, ScoringTarget
from services.results.scoring.score_answer import score_answers
from tests.fakes.eventually import counted_turns

FIND = {"function": "regex", "regex_pattern": "[A-D]"}
LOWER = {"function": "lowercase"}


def task(*pipelines: list[dict[str, str]]) -> TaskScoring:
    filters = [{"name": f"f{number}", "filter": steps} for number, steps in enumerate(pipelines)]
    return TaskScoring(
        OutputType.GENERATE_UNTIL, metrics=(MetricUse("exact_match"),), filters_json=json.dumps(filters)
    )


def compiled(*pipelines: list[dict[str, str]]) -> CompiledScoring:
    return compile_scoring(task(*pipelines))


def test_without_filters_any_answer_is_quick() -> None:
    assert compiled().quick_characters == math.inf


def test_few_short_steps_are_quick() -> None:
    assert 1000 < compiled([FIND]).quick_characters < 100_000
    assert compiled([LOWER]).quick_characters == 100_000


@pytest.mark.parametrize(
    "pipelines",
    [[[LOWER] * 9], [[{"function": "format_span"}]], [[LOWER, FIND]], [[FIND]] * 9],
    ids=["many steps", "a step that reads again and again", "a longer text", "many pipelines"],
)
def test_what_may_take_long_goes_to_the_scorer(pipelines: list[list[dict[str, str]]]) -> None:
    assert compiled(*pipelines).quick_characters < 1


class NoScorer:
    async def score(
        self,
        scoring: UncompiledScoring,  # noqa: ARG002  # the port has it
        answers: object,  # noqa: ARG002  # as above
    ) -> list[Scored]:
        raise AssertionError("all of them are quick")


async def test_others_have_their_turn_between_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score_answer, "_HOLD_SECONDS", 0.0)
    scoring = task([FIND])
    answers = [AnswerToScore(ScoringTarget(texts=("A",)), Answer("A")) for _ in range(50)]
    uncompiled = UncompiledScoring(scoring, None, shared_by="")
    async with counted_turns() as turns:
        scored = await score_answers(NoScorer(), compile_scoring(scoring), uncompiled, answers)
    assert all(isinstance(each, Score) and not each.is_unparsed for each in scored)
    assert turns.count >= 50
