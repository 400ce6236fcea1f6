"""Choices that are weighed, or said in words; one right choice, or several."""

import math

import pytest

from proctor.values.outcome import Answer
from proctor.values.scoring import MetricUse, OutputType, ScoringMethod, TaskScoring
from services.results.scoring.compiled_scoring import (
    CompiledMetric,
    CompiledScoring,
    compile_scoring,
    metric_names,
)
from services.results.scoring.score import Score, ScoringImpossible, ScoringTarget
from services.results.scoring.score_answer import score_answer
from tests.fakes.results.recorded_run import logprob_answer

CHOICES = (" no", " yes", " perhaps")
SAYS = (" The capital is Paris.", " The capital is Lyon.")
RECORD = ScoringTarget(SAYS, 0, texts=("Paris", "the city of Paris"), choice_texts=("Paris", "Lyon"))


def weighed(
    target: ScoringTarget, logprobs: tuple[float, ...], *metrics: str, greedy: tuple[bool, ...] = ()
) -> Score:
    scoring = CompiledScoring(OutputType.MULTIPLE_CHOICE, tuple(map(CompiledMetric, metrics)))
    return score_answer(scoring, target, logprob_answer(logprobs, greedy))


def spoken(target: ScoringTarget, text: str, *metrics: str) -> Score:
    scoring = CompiledScoring(
        OutputType.MULTIPLE_CHOICE, tuple(map(CompiledMetric, metrics)), is_generated=True
    )
    return score_answer(scoring, target, Answer(text))


def task_scoring(*metrics: str, filters: str = "") -> TaskScoring:
    uses = tuple(MetricUse(name) for name in metrics)
    return TaskScoring(OutputType.MULTIPLE_CHOICE, uses, filters, " ")


@pytest.mark.parametrize(
    ("logprobs", "value"), [((-1, -2, -3), 1.0), ((-3, -2, -1), 1.0), ((-2, -1, -3), 0.0)]
)
def test_any_of_several_right_choices_counts(logprobs: tuple[float, ...], value: float) -> None:
    target = ScoringTarget(CHOICES, right_choices=(0, 2))
    assert weighed(target, logprobs, "acc").scores == {"acc": value}


def test_any_right_choice_counts_per_character_and_greedily_too() -> None:
    target = ScoringTarget(CHOICES, right_choices=(0, 2))
    score = weighed(target, (-2, -1.5, -3.4), "acc", "acc_norm", "exact_match", greedy=(False, True, False))
    assert score.scores == {"acc": 0.0, "acc_norm": 1.0, "exact_match": 0.0}
    assert weighed(target, (-2, -1, -3), "exact_match", greedy=(True, False, False)).scores == {
        "exact_match": 1.0
    }


def test_the_brier_score_is_the_squared_distance_from_the_right_choice() -> None:
    logprobs = (math.log(0.1), math.log(0.1), math.log(0.2))  # probabilities 1/4, 1/4, 1/2
    score = weighed(ScoringTarget(CHOICES, 2), logprobs, "brier_score", "likelihood")
    assert score.scores == {
        "brier_score": pytest.approx(0.25**2 + 0.25**2 + 0.5**2, abs=1e-12),
        "likelihood": math.log(0.2),
    }
    assert weighed(ScoringTarget(CHOICES, 0), (-5000.0, -6000.0, -math.inf), "brier_score").scores == {
        "brier_score": 0.0
    }
    with pytest.raises(ScoringImpossible, match="the right choice is impossible"):
        weighed(ScoringTarget(CHOICES, 2), (-1.0, -2.0, -math.inf), "likelihood")


def test_code_that_makes_their_figure_gets_the_right_choice_and_all_probabilities() -> None:
    uses = tuple(MetricUse(name, aggregation="own.py:mine") for name in ("brier_score", "likelihood"))
    scoring = compile_scoring(TaskScoring(OutputType.MULTIPLE_CHOICE, uses, code_digest="d"))
    stored = score_answer(scoring, ScoringTarget(CHOICES, 1), logprob_answer((-1.0, -1.0, -1.0))).stored
    assert stored["likelihood"] == (1, [-1.0] * 3)
    assert stored["brier_score"] == (1, [pytest.approx(1 / 3)] * 3)


@pytest.mark.parametrize("metric", ["f1", "mcc", "brier_score", "likelihood"])
def test_figures_of_single_labels_refuse_several_right_choices(metric: str) -> None:
    with pytest.raises(ScoringImpossible, match="one right choice"):
        weighed(ScoringTarget(CHOICES, right_choices=(0, 2)), (-1, -2, -3), metric)


def test_mc2_is_the_share_of_probability_on_right_choices() -> None:
    probabilities = (0.2, 0.1, 0.1)
    logprobs = tuple(math.log(probability) for probability in probabilities)
    score = weighed(ScoringTarget(CHOICES, right_choices=(0, 2)), logprobs, "mc2")
    assert score.scores["mc2"] == pytest.approx(0.3 / 0.4, abs=1e-12)
    assert weighed(ScoringTarget(CHOICES, 1), logprobs, "mc2").scores["mc2"] == pytest.approx(0.25, abs=1e-12)


def test_mc2_of_very_unlikely_choices_is_no_division_by_zero() -> None:
    assert weighed(ScoringTarget(CHOICES, 0), (-5000.0, -5000.0, -math.inf), "mc2").scores[
        "mc2"
    ] == pytest.approx(0.5)
    with pytest.raises(ScoringImpossible, match="no choice is possible"):
        weighed(ScoringTarget(CHOICES, 0), (-math.inf,) * 3, "mc2")


def test_an_empty_choice_has_no_figure_per_character() -> None:
    with pytest.raises(ScoringImpossible, match="empty"):
        weighed(ScoringTarget((" ", " yes"), 0), (-1, -2), "acc_norm")


def test_what_a_choice_says_is_held_against_texts() -> None:
    assert weighed(RECORD, (-1, -2), "squad_em", "squad_f1").scores == {"squad_em": 1.0, "squad_f1": 1.0}
    assert weighed(RECORD, (-2, -1), "squad_em", "squad_f1").scores == {"squad_em": 0.0, "squad_f1": 0.0}
    with pytest.raises(ScoringImpossible, match="no texts"):
        weighed(ScoringTarget(CHOICES, 0), (-1, -2, -3), "squad_em")


@pytest.mark.parametrize("text", ["The capital is Lyon.", "lyon", "I would say Lyon", "B"])
def test_a_choice_may_be_named_by_what_it_says(text: str) -> None:
    score = spoken(RECORD, text, "squad_em", "acc")
    assert (score.prediction, score.scores) == ("The capital is Lyon.", {"squad_em": 0.0, "acc": 0.0})


def test_a_choice_in_words_is_scored_as_one_that_was_weighed() -> None:
    score = spoken(ScoringTarget(CHOICES, 1), "The answer is **yes**.", "acc", "exact_match", "f1", "mcc")
    assert score == Score("yes", {"acc": 1.0, "exact_match": 1.0, "f1": (1, 1), "mcc": (1, 1)})
    assert spoken(ScoringTarget(CHOICES, right_choices=(0, 2)), "perhaps", "acc").scores == {"acc": 1.0}


@pytest.mark.parametrize("text", ["", "Who knows?", "yes or no", "<think>yes</think>"])
def test_words_that_name_no_choice_are_unparsed_and_wrong(text: str) -> None:
    score = spoken(ScoringTarget(CHOICES, 1), text, "acc", "f1")
    assert score == Score("", {"acc": 0.0, "f1": (1, -1)}, is_unparsed=True)


def test_words_do_not_need_log_probabilities_and_weights_no_words() -> None:
    with pytest.raises(ScoringImpossible, match="0 log-probabilities"):
        weighed(ScoringTarget(CHOICES, 1), (), "acc")
    with pytest.raises(ScoringImpossible, match="'acc_norm' for a choice that is given in words"):
        spoken(ScoringTarget(CHOICES, 1), "yes", "acc_norm")


def test_without_a_right_choice_nothing_is_scored() -> None:
    with pytest.raises(ScoringImpossible, match="no right choice"):
        spoken(ScoringTarget(CHOICES), "yes", "acc")


@pytest.mark.parametrize("method", [ScoringMethod.GENERATE, ScoringMethod.CONSTRAINED])
def test_what_needs_log_probabilities_is_left_out_of_spoken_choices(method: ScoringMethod) -> None:
    asked = task_scoring("acc", "acc_norm", "acc_bytes", "mc2", "f1")
    assert metric_names(compile_scoring(asked, method)) == ("acc", "f1")
    assert metric_names(compile_scoring(asked, ScoringMethod.LOGLIKELIHOOD)) == (
        "acc",
        "acc_norm",
        "acc_bytes",
        "mc2",
        "f1",
    )


def test_filters_read_spoken_choices_and_leave_weighed_ones_alone() -> None:
    filters = (
        '[{"name": "strict", "filter": [{"function": "regex", "regex_pattern": "Answer: (\\\\w+)"}]},'
        ' {"name": "first", "filter": [{"function": "first_line"}]}]'
    )
    asked = task_scoring("acc", filters=filters)
    said = compile_scoring(asked, ScoringMethod.GENERATE)
    score = score_answer(said, ScoringTarget(CHOICES, 1), Answer("no\nbut on the other hand\nAnswer: yes"))
    assert score == Score("yes", {"acc,strict": 1.0, "acc,first": 0.0})
    assert metric_names(compile_scoring(asked, ScoringMethod.LOGLIKELIHOOD)) == ("acc",)


def test_a_text_task_is_read_the_same_by_every_method() -> None:
    text = TaskScoring(OutputType.GENERATE_UNTIL, (MetricUse("exact_match"),))
    assert compile_scoring(text, ScoringMethod.LOGLIKELIHOOD) == compile_scoring(text, ScoringMethod.GENERATE)


def test_contexts_are_as_long_as_they_are_without_what_follows_them() -> None:
    contexts = ("Ann", "The old man")
    target = ScoringTarget(tuple(f"{one} left early." for one in contexts), 1, choice_ending=" left early.")
    score = weighed(target, (-4.0, -6.0), "acc", "acc_norm", "acc_bytes")
    assert score.scores == {"acc": 0.0, "acc_norm": 1.0, "acc_bytes": 1.0}
    assert score.prediction == "Ann left early."
