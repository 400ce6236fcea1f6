"""Baselines score as an answer that is always the same, or any at random."""

import pytest

from proctor.values.scoring import MetricUse, OutputType, ScoringMethod, TaskScoring
from services.results.leaderboard.baseline import BaselineColumns, MajorityCount, TaskBaselines
from services.results.runs.run_plan import PlannedTask
from services.results.scoring.compiled_scoring import compile_scoring
from services.results.scoring.score import ScoringImpossible, ScoringTarget
from services.results.scoring.score_answer import score_answer
from services.results.statistics.figure import Figure

LOGLIKELIHOOD, GENERATE = ScoringMethod.LOGLIKELIHOOD, ScoringMethod.GENERATE


def baselines(
    targets: list[ScoringTarget],
    *metrics: str,
    output_type: OutputType = OutputType.MULTIPLE_CHOICE,
    method: ScoringMethod = LOGLIKELIHOOD,
) -> TaskBaselines:
    task_scoring = TaskScoring(output_type, tuple(map(MetricUse, metrics)), target_delimiter=" ")
    majority = MajorityCount()
    majority.add(targets)
    scoring = compile_scoring(task_scoring, method)
    columns = BaselineColumns(scoring, majority)
    answers = columns.answers(enumerate(targets, start=10))
    columns.add(answers, [score_answer(scoring, *answer.to_score) for answer in answers])
    return columns.figures(PlannedTask("t", "set", 10, len(targets), task_scoring), {})


def choices(right: int, *texts: str) -> ScoringTarget:
    return ScoringTarget(tuple(f" {text}" for text in texts), right)


def mean(figure: Figure) -> float:
    assert figure.mean is not None
    return figure.mean


THREE_OF_FOUR = [choices(1, "no", "yes")] * 3 + [choices(0, "no", "yes")]


@pytest.mark.parametrize("method", [LOGLIKELIHOOD, GENERATE])
def test_always_the_most_frequent_answer_is_right_as_often_as_it_is_frequent(method: ScoringMethod) -> None:
    figure = baselines(THREE_OF_FOUR, "acc", method=method)["majority"]["acc"]
    assert (figure.mean, figure.n) == (0.75, 4)
    assert figure.stderr == pytest.approx(0.25)


@pytest.mark.parametrize("method", [LOGLIKELIHOOD, GENERATE])
def test_random_expects_one_in_as_many_as_there_are_choices(method: ScoringMethod) -> None:
    targets = [choices(0, "a", "b"), choices(2, "a", "b", "c", "d")]
    figure = baselines(targets, "acc", method=method)["random"]["acc"]
    assert mean(figure) == pytest.approx((1 / 2 + 1 / 4) / 2)
    assert (figure.n, figure.stderr, figure.interval_method) == (2, None, "")


def test_random_expects_more_where_several_choices_are_right() -> None:
    target = ScoringTarget((" a", " b", " c", " d"), right_choices=(0, 1, 3))
    found = baselines([target], "acc", "mc2")
    assert mean(found["random"]["acc"]) == mean(found["random"]["mc2"]) == pytest.approx(3 / 4)
    assert mean(found["majority"]["acc"]) == 1.0


def test_random_over_labels_is_the_figure_of_the_expected_table() -> None:
    found = baselines(THREE_OF_FOUR, "f1", "mcc")["random"]
    # In four draws 1.5 are right yeses, 1.5 missed ones, 0.5 false ones.
    assert mean(found["f1"]) == pytest.approx(2 * 1.5 / (2 * 1.5 + 1.5 + 0.5))
    assert mean(found["mcc"]) == pytest.approx(0.0)


def test_the_majority_of_labels_has_no_correlation_with_them() -> None:
    found = baselines(THREE_OF_FOUR, "f1", "mcc")["majority"]
    assert mean(found["f1"]) == pytest.approx(6 / 7)
    assert mean(found["mcc"]) == 0.0


def test_the_longest_choice_goes_by_characters_without_delimiter_and_the_first_of_equals_wins() -> None:
    targets = [choices(1, "aa", "bbb", "ccc"), choices(1, "aa", "bb"), choices(0, "ß", "aa")]
    assert mean(baselines(targets, "acc")["longest"]["acc"]) == pytest.approx(1 / 3)


def test_metrics_by_length_take_the_chosen_one_too() -> None:
    found = baselines([choices(1, "a", "bb", "a long one")], "acc_norm", "acc_bytes", "exact_match")
    assert [mean(figure) for figure in found["majority"].values()] == [1.0, 1.0, 1.0]
    assert [mean(figure) for figure in found["longest"].values()] == [0.0, 0.0, 0.0]


def test_the_majority_of_positions_falls_back_to_the_first_where_there_are_fewer_choices() -> None:
    targets = [choices(2, "a", "b", "c")] * 2 + [choices(0, "a", "b")]
    assert mean(baselines(targets, "acc")["majority"]["acc"]) == 1.0


def test_free_text_has_only_a_majority() -> None:
    targets = [
        ScoringTarget(texts=("42",)),
        ScoringTarget(texts=("7",)),
        ScoringTarget(texts=("42", "forty-two")),
    ]
    found = baselines(targets, "exact_match", output_type=OutputType.GENERATE_UNTIL, method=GENERATE)
    assert mean(found["majority"]["exact_match"]) == pytest.approx(2 / 3)
    assert found["random"]["exact_match"] == found["longest"]["exact_match"] == Figure(n=3)


def test_samples_that_cannot_be_scored_have_no_baselines() -> None:
    with pytest.raises(ScoringImpossible):
        baselines([ScoringTarget((), 0)], "acc")
