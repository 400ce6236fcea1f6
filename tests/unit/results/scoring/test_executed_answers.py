"""A worker has judged such an answer already: the result of its code, or the verdict on its rollout."""

import pytest

from proctor.values.code import CodeResult
from proctor.values.outcome import Answer, Outcome
from proctor.values.rollout import RolloutVerdict
from proctor.values.scoring import MetricUse, OutputType, TaskScoring
from proctor.wire.values import OUTCOME
from services.results.scoring.compiled_scoring import compile_scoring
from services.results.scoring.score import ScoringImpossible, ScoringTarget
from services.results.scoring.score_answer import score_answer

TARGET = ScoringTarget(texts=("assert f(1) == 2",))
SCORING = compile_scoring(TaskScoring(OutputType.GENERATE_UNTIL, (MetricUse("pass@1"), MetricUse("reward"))))


@pytest.mark.parametrize(
    ("verdict", "passed"),
    [
        (RolloutVerdict(1.0, "4 of 4 tests passed"), 1.0),
        (RolloutVerdict(0.75, "3 of 4"), 0.0),
        (RolloutVerdict(0.0), 0.0),
    ],
)
def test_a_rollout_passes_with_the_whole_score_only(verdict: RolloutVerdict, passed: float) -> None:
    sent = OUTCOME.to_proto(Outcome(0, 0, 0, 1, Answer("done", verdict=verdict)))
    received = OUTCOME.from_proto(type(sent).FromString(sent.SerializeToString())).result
    assert isinstance(received, Answer)
    assert (received.verdict, received.code_result) == (verdict, None)
    score = score_answer(SCORING, TARGET, received)
    assert score.scores == {"pass@1": passed, "reward": verdict.score}
    assert score.prediction == verdict.detail


@pytest.mark.parametrize(
    ("suspicions", "scores"),
    [(0, {"unsuspected": 1.0, "reward_unsuspected": 0.5}), (2, {"unsuspected": 0.0})],
)
def test_a_suspicious_rollout_has_no_score_among_those_that_are_not(
    suspicions: int, scores: dict[str, float]
) -> None:
    metrics = (MetricUse("unsuspected"), MetricUse("reward_unsuspected"))
    scoring = compile_scoring(TaskScoring(OutputType.GENERATE_UNTIL, metrics))
    judged = Answer("done", verdict=RolloutVerdict(0.5, "1 of 2", suspicions))
    score = score_answer(scoring, TARGET, judged)
    assert (score.scores, score.is_unparsed) == (scores, False)


@pytest.mark.parametrize("is_passed", [True, False])
def test_code_passes_or_not(*, is_passed: bool) -> None:
    scoring = compile_scoring(TaskScoring(OutputType.GENERATE_UNTIL, (MetricUse("pass@1"),)))
    score = score_answer(scoring, TARGET, Answer("x", code_result=CodeResult(is_passed, "passed")))
    assert (score.scores, score.prediction) == ({"pass@1": float(is_passed)}, "passed")


def test_what_no_worker_judged_has_no_score() -> None:
    with pytest.raises(ScoringImpossible, match="was not executed with it; retry the run"):
        score_answer(SCORING, TARGET, Answer("x"))
