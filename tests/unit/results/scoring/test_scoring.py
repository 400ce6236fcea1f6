"""Answers become scores; unparsed ones are counted and never mapped to a label."""

import json
import math

import pytest

from proctor.values.outcome import Answer
from proctor.values.scoring import OutputType
from services.results.scoring.compiled_scoring import (
    CompiledMetric,
    CompiledScoring,
    InvalidScoring,
    metric_names,
    read_filters,
    read_metric,
)
from services.results.scoring.score import ScoringImpossible, ScoringTarget
from services.results.scoring.score_answer import score_answer
from services.results.scoring.text_match import TextMatch
from services.results.scoring.timed_regex import TimedRegex
from tests.fakes.results.recorded_run import logprob_answer

CHOICES = (" no", " yes", " perhaps")


def choice_task(*metrics: str, target_delimiter: str = " ") -> CompiledScoring:
    used = tuple(CompiledMetric(name) for name in metrics)
    return CompiledScoring(OutputType.MULTIPLE_CHOICE, used, target_delimiter=target_delimiter)


def text_task(filters: object = None, **options: object) -> CompiledScoring:
    metric = read_metric("exact_match", json.dumps(options) if options else "")
    pipelines = read_filters(json.dumps(filters)) if filters else ()
    return CompiledScoring(OutputType.GENERATE_UNTIL, (metric,), pipelines)


def regex_filter(pattern: str, name: str = "strict", **options: object) -> dict[str, object]:
    return {"name": name, "filter": [{"function": "regex", "regex_pattern": pattern, **options}]}


def test_the_choice_with_the_largest_logprob_is_the_prediction() -> None:
    score = score_answer(choice_task("acc"), ScoringTarget(CHOICES, 1), logprob_answer((-3.0, -1.0, -2.0)))
    assert (score.prediction, score.scores, score.is_unparsed) == ("yes", {"acc": 1.0}, False)


def test_the_first_of_equal_choices_wins() -> None:
    score = score_answer(choice_task("acc"), ScoringTarget(CHOICES, 2), logprob_answer((-2.0, -1.0, -1.0)))
    assert (score.prediction, score.scores["acc"]) == ("yes", 0.0)


def test_normalised_accuracy_divides_by_the_choice_without_its_delimiter() -> None:
    answer = logprob_answer((-1.0, -1.2, -2.4))
    target = ScoringTarget(CHOICES, 2)
    assert score_answer(choice_task("acc", "acc_norm"), target, answer).scores == {
        "acc": 0.0,
        "acc_norm": 1.0,
    }
    # -1.5 / 2 against -2.4 / 3: with the delimiter counted, the first would win by -0.5 against -0.6.
    ties = logprob_answer((-1.0, -1.5))
    assert score_answer(choice_task("acc_norm"), ScoringTarget((" a", " bb"), 1), ties).scores == {
        "acc_norm": 1.0
    }


def test_a_second_space_belongs_to_the_choice() -> None:
    """The continuations "  aa" and " bbbb" are a delimiter and the choices " aa" (3) and "bbbb" (4)."""
    answer = logprob_answer((-3.0, -3.9))
    score = score_answer(choice_task("acc_norm"), ScoringTarget(("  aa", " bbbb"), 1), answer)
    assert score.scores == {"acc_norm": 1.0}


def test_characters_and_bytes_are_distinguished() -> None:
    answer = logprob_answer((-2.0, -1.6))
    scores = score_answer(
        choice_task("acc_norm", "acc_bytes"), ScoringTarget((" éé", " a"), 0), answer
    ).scores
    assert scores == {"acc_norm": 1.0, "acc_bytes": 1.0}
    shorter = logprob_answer((-2.0, -0.8))
    scores = score_answer(
        choice_task("acc_norm", "acc_bytes"), ScoringTarget((" éé", " a"), 0), shorter
    ).scores
    assert scores == {"acc_norm": 0.0, "acc_bytes": 1.0}


def test_label_metrics_keep_target_and_predicted() -> None:
    score = score_answer(choice_task("f1", "mcc"), ScoringTarget(CHOICES, 2), logprob_answer((-1, -2, -3)))
    assert score.scores == {"f1": (2, 0), "mcc": (2, 0)}


def test_exact_match_of_a_choice_is_greedy_decoding() -> None:
    answer = logprob_answer((-1.0, -2.0, -3.0), are_greedy=(False, True, False))
    assert score_answer(choice_task("exact_match"), ScoringTarget(CHOICES, 1), answer).scores == {
        "exact_match": 1.0
    }
    assert score_answer(choice_task("exact_match"), ScoringTarget(CHOICES, 0), answer).scores == {
        "exact_match": 0.0
    }


def test_a_logprob_that_is_no_number_is_no_answer() -> None:
    for logprobs in ((math.nan, -1.0), (-1.0, math.nan), (-1.0, math.inf)):
        with pytest.raises(ScoringImpossible, match="not a number"):
            score_answer(choice_task("acc"), ScoringTarget((" a", " b"), 0), logprob_answer(logprobs))


def test_a_choice_may_be_impossible() -> None:
    answer = logprob_answer((float("-inf"), -5.0, float("-inf")))
    assert score_answer(choice_task("acc"), ScoringTarget(CHOICES, 1), answer).scores == {"acc": 1.0}


@pytest.mark.parametrize(
    ("target", "logprobs"),
    [
        (ScoringTarget(CHOICES, 1), (-1.0,)),
        (ScoringTarget((), 0), ()),
        (ScoringTarget(CHOICES), (-1, -2, -3)),
    ],
)
def test_an_answer_that_does_not_fit_its_sample_is_not_scored(
    target: ScoringTarget, logprobs: tuple[float, ...]
) -> None:
    with pytest.raises(ScoringImpossible):
        score_answer(choice_task("acc"), target, logprob_answer(logprobs))


def test_a_metric_of_another_output_type_is_not_scored() -> None:
    with pytest.raises(ScoringImpossible, match="no metric 'bleu' for multiple choice"):
        score_answer(choice_task("bleu"), ScoringTarget(CHOICES, 0), logprob_answer((-1, -2, -3)))
    task = CompiledScoring(OutputType.GENERATE_UNTIL, (CompiledMetric("acc"),))
    with pytest.raises(ScoringImpossible, match="no metric 'acc' for generated text"):
        score_answer(task, ScoringTarget(texts=("a",)), Answer("a"))


def test_a_text_is_right_when_it_equals_any_accepted_one() -> None:
    target = ScoringTarget(texts=("4", "four"))
    assert score_answer(text_task(), target, Answer("four")).scores == {"exact_match": 1.0}
    assert score_answer(text_task(), target, Answer(" four")).scores == {"exact_match": 0.0}


@pytest.mark.parametrize(
    ("options", "answer", "expected"),
    [
        ({"ignore_case": True}, "PARIS", "Paris"),
        ({"ignore_punctuation": True}, "Paris.", "Paris"),
        ({"ignore_numbers": True}, "Paris 75", "Paris "),
        ({"regexes_to_ignore": [",", "\\$"]}, "$1,200", "1200"),
    ],
)
def test_differences_are_overlooked_where_the_task_says_so(
    options: dict[str, object], answer: str, expected: str
) -> None:
    target = ScoringTarget(texts=(expected,))
    assert score_answer(text_task(**options), target, Answer(answer)).scores == {"exact_match": 1.0}
    assert score_answer(text_task(), target, Answer(answer)).scores == {"exact_match": 0.0}


def test_a_filter_reads_the_answer_out_of_the_text() -> None:
    task = text_task([regex_filter(r"answer is (-?\d+)")])
    score = score_answer(task, ScoringTarget(texts=("42",)), Answer("So the answer is 42."))
    assert (score.prediction, score.scores, score.is_unparsed) == ("42", {"exact_match": 1.0}, False)


@pytest.mark.parametrize(("group_select", "prediction"), [(0, "1"), (-1, "3"), (1, "2")])
def test_a_filter_takes_the_match_it_is_given(group_select: int, prediction: str) -> None:
    task = text_task([regex_filter(r"(\d)", group_select=group_select)])
    assert score_answer(task, ScoringTarget(texts=("3",)), Answer("1 2 3")).prediction == prediction


def test_of_several_groups_the_first_that_is_not_empty_counts() -> None:
    task = text_task([regex_filter(r"(\d+)|([a-z]+)")])
    assert score_answer(task, ScoringTarget(texts=("x",)), Answer("abc")).prediction == "abc"


@pytest.mark.parametrize("text", ["I do not know.", "", "  \n"])
def test_an_answer_that_cannot_be_read_is_wrong_and_counted_as_unparsed(text: str) -> None:
    task = text_task([regex_filter(r"answer is (\d+)", fallback="[invalid]")])
    score = score_answer(task, ScoringTarget(texts=("[invalid]",)), Answer(text))
    assert (score.prediction, score.scores, score.is_unparsed) == ("", {"exact_match": 0.0}, True)


def test_an_empty_answer_is_unparsed_without_any_filter() -> None:
    score = score_answer(text_task(), ScoringTarget(texts=("4",)), Answer(""))
    assert (score.scores, score.is_unparsed) == ({"exact_match": 0.0}, True)


def test_filters_follow_one_another() -> None:
    steps = [
        {"function": name}
        for name in ("first_line", "uppercase", "lowercase", "remove_whitespace", "take_first")
    ]
    task = text_task([{"name": "chain", "filter": steps}])
    assert score_answer(task, ScoringTarget(texts=("yes",)), Answer("\n Yes \nor no")).scores == {
        "exact_match": 1.0
    }


def test_several_filters_give_a_figure_each() -> None:
    task = text_task([regex_filter(r"#### (\d+)"), regex_filter(r"(\d+)", name="flexible", group_select=-1)])
    score = score_answer(task, ScoringTarget(texts=("7",)), Answer("It is 7"))
    assert score.scores == {"exact_match,strict": 0.0, "exact_match,flexible": 1.0}
    assert (score.prediction, score.is_unparsed) == ("7", False)
    assert metric_names(task) == ("exact_match,strict", "exact_match,flexible")


def test_options_become_what_is_overlooked() -> None:
    options = '{"ignore_case": true, "regexes_to_ignore": ["a"]}'
    expected = CompiledMetric(
        "exact_match", TextMatch(ignore_case=True, regexes_to_ignore=(TimedRegex("a"),))
    )
    assert read_metric("exact_match", options) == expected


@pytest.mark.parametrize("options", ["{", "[1]", '{"ignore_grammar": true}'])
def test_options_that_do_not_exist_are_refused(options: str) -> None:
    with pytest.raises(InvalidScoring):
        read_metric("exact_match", options)


@pytest.mark.parametrize(
    "filters",
    ["{", '[{"name": "a"}]', '[{"name": "a", "filter": [{"function": "guess"}]}]',
     '[{"name": "a", "filter": [{"function": "regex", "flavour": "x"}]}]'],
)  # fmt: skip
def test_filters_that_do_not_exist_are_refused(filters: str) -> None:
    with pytest.raises(InvalidScoring):
        read_filters(filters)
