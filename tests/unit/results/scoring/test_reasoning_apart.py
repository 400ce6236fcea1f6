"""Reasoning is left out before any filter and metric; the answer that is stored keeps it."""

import json
from dataclasses import replace

import pytest

from proctor.values.code import CodeResult
from proctor.values.outcome import Answer
from proctor.values.scoring import MetricUse, OutputType, TaskScoring
from services.results.scoring.compiled_scoring import CompiledScoring, compile_scoring
from services.results.scoring.score import Score, ScoringTarget
from services.results.scoring.score_answer import score_answer

ANSWER = "<think>Perhaps Lyon? Answer: 3\n#### 3\nNo.</think>\n\nAnswer: 8\n#### 8 in Nantes"
REGEX = {"function": "regex", "regex_pattern": "#### (\\d+)"}


def scoring_by(metric: str, filters: object = None, **options: object) -> CompiledScoring:
    use = MetricUse(metric, json.dumps(options))
    return compile_scoring(
        TaskScoring(OutputType.GENERATE_UNTIL, (use,), "" if filters is None else json.dumps(filters), " ")
    )


@pytest.mark.parametrize(
    ("metric", "options", "right", "wrong"),
    [
        ("contains", {}, "Nantes", "Lyon"),
        ("regex", {"pattern": "Answer: (\\d+)"}, "8", "3"),
        ("numeric", {}, "8", "3"),
    ],
)
def test_no_metric_reads_it(metric: str, options: dict[str, object], right: str, wrong: str) -> None:
    scoring = scoring_by(metric, **options)
    assert score_answer(scoring, ScoringTarget(texts=(right,)), Answer(ANSWER)).scores == {metric: 1.0}
    assert score_answer(scoring, ScoringTarget(texts=(wrong,)), Answer(ANSWER)).scores == {metric: 0.0}


@pytest.mark.parametrize("metric", ["exact_match", "squad_em", "squad_f1"])
def test_equality_is_that_of_the_answer_alone(metric: str) -> None:
    score = score_answer(
        scoring_by(metric), ScoringTarget(texts=("Nantes",)), Answer("<think>Lyon?</think> Nantes\n")
    )
    assert score == Score("Nantes", {metric: 1.0})


def test_no_filter_reads_it() -> None:
    scoring = scoring_by("exact_match", [{"name": "first", "filter": [REGEX, {"function": "take_first"}]}])
    assert score_answer(scoring, ScoringTarget(texts=("8",)), Answer(ANSWER)).scores == {"exact_match": 1.0}
    unended = Answer("<think>It is #### 8 but wait", finish_reason="length")
    score = score_answer(scoring, ScoringTarget(texts=("8",)), unended)
    assert score == Score("", {"exact_match": 0.0}, is_unparsed=True)


def test_an_order_may_keep_it() -> None:
    separate = TaskScoring(OutputType.GENERATE_UNTIL, (MetricUse("contains"),))
    kept = compile_scoring(replace(separate, keeps_reasoning=True))
    lyon = ScoringTarget(texts=("Lyon",))
    assert score_answer(kept, lyon, Answer(ANSWER)) == Score(ANSWER, {"contains": 1.0})
    assert score_answer(compile_scoring(separate), lyon, Answer(ANSWER)).scores == {"contains": 0.0}


def test_code_of_reasoning_that_never_ended_is_unparsed() -> None:
    failed = Answer("<think>```python\nx = 1\n```", code_result=CodeResult(is_passed=False, detail="failed"))
    score = score_answer(scoring_by("pass@1"), ScoringTarget(texts=("assert x",)), failed)
    assert score == Score("", {"pass@1": 0.0}, is_unparsed=True)
