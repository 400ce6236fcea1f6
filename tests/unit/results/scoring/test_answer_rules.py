"""Metrics that read answers in a way of their own: what is right, what is wrong, what is unparsed."""

import json

import pytest

from proctor.values.metrics.names import is_right_or_wrong
from proctor.values.outcome import Answer
from proctor.values.scoring import OutputType
from services.results.scoring.answer_rules import RULE_READERS
from services.results.scoring.compiled_scoring import (
    CompiledScoring,
    InvalidScoring,
    read_filters,
    read_metric,
)
from services.results.scoring.score import Score, ScoringImpossible, ScoringTarget
from services.results.scoring.score_answer import score_answer
from services.results.scoring.text_metrics import check_target
from services.results.scoring.timed_regex import SlowTime

ENDLESS = "(?:a|b|ab)*[cd]"


def scored(name: str, text: str, *targets: str, options: object = None) -> Score:
    metric = read_metric(name, json.dumps(options) if options else "")
    return score_answer(
        CompiledScoring(OutputType.GENERATE_UNTIL, (metric,)), ScoringTarget(texts=targets), Answer(text)
    )


def right(name: str, prediction: str) -> Score:
    return Score(prediction, {name: 1.0})


def wrong(name: str, prediction: str) -> Score:
    return Score(prediction, {name: 0.0})


def unparsed(name: str) -> Score:
    return Score("", {name: 0.0}, is_unparsed=True)


# Verdicts are weighed, and of several instructions some may be followed.
_IN_PARTS = {"verdict", "preference", "inst_level_strict_acc", "inst_level_loose_acc"}


@pytest.mark.parametrize("metric", sorted(RULE_READERS.keys() - _IN_PARTS))
def test_those_that_compare_are_right_or_wrong(metric: str) -> None:
    assert is_right_or_wrong(metric)


@pytest.mark.parametrize(
    ("answer", "target", "expected"),
    [
        ("The answer is 42.", "42", right("numeric", "42")),
        ("First it was 40. Now it is 41.", "42", wrong("numeric", "41")),
        ("<think>1, 2, 3</think>So it is 42", "42", right("numeric", "42")),
        ("<think>It must be 42", "42", unparsed("numeric")),
        ("Forty-two", "42", right("numeric", "42")),
        ("", "42", unparsed("numeric")),
        ("1,234", "1234.0", right("numeric", "1,234")),
        ("0.75", "3/4", right("numeric", "0.75")),
        ("0.333", "1/3", wrong("numeric", "0.333")),
        ("9007199254740993", "9007199254740992", wrong("numeric", "9007199254740993")),
        ("80%", "80", right("numeric", "80%")),
        ("80%", "0.8", right("numeric", "80%")),
        ("0.8", "80 %", right("numeric", "0.8")),
        ("80%", "0.8%", wrong("numeric", "80%")),
        ("8%", "0.8", wrong("numeric", "8%")),
        ("6", "2 + 4 = 6 #### 6", right("numeric", "6")),
    ],
)
def test_numbers_are_held_against_each_other_exactly(answer: str, target: str, expected: Score) -> None:
    assert scored("numeric", answer, target) == expected


@pytest.mark.parametrize(
    ("answer", "target", "options", "value"),
    [
        ("1.1", "1", {"tolerance": 0.1}, 1.0),
        ("1.1000001", "1", {"tolerance": 0.1}, 0.0),
        ("0.9", "1", {"tolerance": 0.1}, 1.0),
        ("101", "100", {"relative_tolerance": 0.01}, 1.0),
        ("-101", "-100", {"relative_tolerance": 0.01}, 1.0),
        ("102", "100", {"relative_tolerance": 0.01}, 0.0),
        ("102", "100", {"relative_tolerance": 0.01, "tolerance": 2}, 1.0),
        ("0.001", "0", {"relative_tolerance": 0.5}, 0.0),
        ("81%", "0.8", {"tolerance": 0.01}, 1.0),
    ],
)
def test_one_of_two_tolerances_is_enough(answer: str, target: str, options: object, value: float) -> None:
    assert scored("numeric", answer, target, options=options).scores == {"numeric": value}


@pytest.mark.parametrize("answer", ["42", "no idea"])
def test_a_target_without_a_number_fails_the_scoring_whatever_is_answered(answer: str) -> None:
    with pytest.raises(ScoringImpossible, match="target 'a few' names no number"):
        scored("numeric", answer, "a few")
    assert scored("numeric", "42", "a few", "42").scores == {"numeric": 1.0}


@pytest.mark.parametrize(
    ("answer", "options", "expected"),
    [
        ("id: AB-12, or CD-34", {"pattern": r"[A-Z]{2}-\d+"}, right("regex", "AB-12")),
        ("CD-34, AB-12", {"pattern": r"[A-Z]{2}-\d+"}, wrong("regex", "CD-34")),
        ("<id> AB-12 </id>", {"pattern": "<id>(.*?)</id>"}, right("regex", "AB-12")),
        ("x AB-12", {"pattern": "(y)|x (.*)"}, right("regex", "AB-12")),
        ("ab-12", {"pattern": r"[A-Z]{2}-\d+"}, unparsed("regex")),
        ("ab-12", {"pattern": r"[A-Z]{2}-\d+", "ignore_case": True}, right("regex", "ab-12")),
        ("ab-12", {"pattern": r"(?s)[A-Z]{2}-\d+", "ignore_case": True}, right("regex", "ab-12")),
        ("none", {"pattern": "x*"}, unparsed("regex")),
        ("", {"pattern": ".*"}, unparsed("regex")),
    ],
)
def test_what_a_pattern_finds_first_is_held_against_the_target(
    answer: str, options: object, expected: Score
) -> None:
    assert scored("regex", answer, "AB-12", options=options) == expected


@pytest.mark.parametrize(
    ("answer", "target", "options", "value"),
    [
        ("the colour is grey", "gr[ae]y", None, 1.0),
        ("the colour is Gray", "gr[ae]y", None, 0.0),
        ("the colour is Gray", "gr[ae]y", {"ignore_case": True}, 1.0),
        ("the colour is grey", "^grey", None, 0.0),
        ("grey", "(x)?", None, 1.0),
    ],
)
def test_without_a_pattern_the_target_is_one(answer: str, target: str, options: object, value: float) -> None:
    found = scored("regex", answer, target, options=options)
    assert found == Score(answer, {"regex": value})


def test_an_empty_answer_is_unparsed_whatever_the_target_would_find_in_it() -> None:
    assert scored("regex", " ", ".*") == unparsed("regex")


def test_a_target_that_is_no_pattern_or_takes_too_long_fails_the_scoring() -> None:
    with pytest.raises(ScoringImpossible, match=r"target 'a\(' is not a regular expression: missing"):
        scored("regex", "a", "a(")
    with pytest.raises(ScoringImpossible, match="has 5001 characters, and a pattern at most 5000"):
        scored("regex", "a", "a" * 5001)
    with pytest.raises(ScoringImpossible, match="took over"):
        scored("regex", "ab" * 60, ENDLESS)


def test_targets_that_are_slow_patterns_share_one_time_and_quick_ones_go_on() -> None:
    slow_time = SlowTime(seconds=0.1)
    scoring = CompiledScoring(OutputType.GENERATE_UNTIL, (read_metric("regex", "", slow_time),))
    for index in range(3):
        with pytest.raises(ScoringImpossible, match="took over"):
            score_answer(scoring, ScoringTarget(texts=(f"(?:a|b|ab)*[cd{index}]",)), Answer("ab" * 60))
    assert slow_time.left < 0
    found = score_answer(scoring, ScoringTarget(texts=("c+d",)), Answer("ab ccd"))
    assert found.scores == {"regex": 1.0}


@pytest.mark.parametrize(
    ("answer", "target", "expected"),
    [
        ("B", "B", right("choice", "B")),
        ("(b) Paris, since it is the capital", "B", right("choice", "B")),
        ("The answer is C.", "B", wrong("choice", "C")),
        ("Let me see.\nAnswer: B", "(B)", right("choice", "B")),
        ("<think>A? No.</think>B", "b", right("choice", "B")),
        ("It is either A or B.", "A", unparsed("choice")),
        ("I am not sure.", "I", unparsed("choice")),
        ("The answer is A. No, wait: B.", "A", wrong("choice", "B")),
        ("Paris", "A", unparsed("choice")),
        ("K", "A", unparsed("choice")),
        ("", "A", unparsed("choice")),
        ("J", "J", right("choice", "J")),
    ],
)
def test_an_answer_settles_on_a_letter_or_is_unparsed(answer: str, target: str, expected: Score) -> None:
    assert scored("choice", answer, target) == expected


@pytest.mark.parametrize(
    ("answer", "target", "expected"),
    [
        ("Positive.", "positive", right("choice", "positive")),
        ("The sentiment is negative.", "positive", wrong("choice", "negative")),
        ("B", "negative", right("choice", "negative")),
        ("positive", "A", right("choice", "positive")),
        ("It is not positive", "positive", unparsed("choice")),
        ("mixed", "positive", unparsed("choice")),
    ],
)
def test_choices_are_named_by_text_or_letter_on_both_sides(answer: str, target: str, expected: Score) -> None:
    assert scored("choice", answer, target, options={"choices": ["positive", "negative"]}) == expected


def test_a_target_that_is_none_of_the_choices_fails_the_scoring() -> None:
    with pytest.raises(ScoringImpossible, match="target 'Paris' is none of the choices A, B, C"):
        scored("choice", "A", "Paris")
    with pytest.raises(ScoringImpossible, match=r"target \(missing\) is none of the choices yes, no"):
        scored("choice", "yes", options={"choices": ["yes", "no"]})


def test_choices_that_differ_in_markup_only_are_distinguished_by_their_exact_text() -> None:
    options = {"choices": ["x", "*x*"]}
    assert scored("choice", "*x*", "*x*", options=options) == right("choice", "*x*")
    assert scored("choice", "It is x.", "x", options=options) == unparsed("choice")


def test_the_first_metric_says_what_was_read_and_any_of_them_that_it_was_not() -> None:
    metrics = (read_metric("exact_match", ""), read_metric("numeric", ""))
    scoring = CompiledScoring(OutputType.GENERATE_UNTIL, metrics)
    target = ScoringTarget(texts=("42",))
    assert score_answer(scoring, target, Answer("So 42")) == Score(
        "So 42", {"exact_match": 0.0, "numeric": 1.0}
    )
    nothing = Score("", {"exact_match": 0.0, "numeric": 0.0}, is_unparsed=True)
    assert score_answer(scoring, target, Answer("So what")) == nothing


def test_rollouts_vote_with_what_was_read_of_them() -> None:
    filters = [{"name": "vote", "filter": [{"function": "majority_vote"}]}]
    scoring = CompiledScoring(
        OutputType.GENERATE_UNTIL, (read_metric("numeric", ""),), read_filters(json.dumps(filters))
    )
    votes = [
        score_answer(scoring, ScoringTarget(texts=("42",)), Answer(text)).scores["numeric"]
        for text in ("It is 42", "So: 42", "41", "none")
    ]
    assert votes[0] == votes[1] != votes[2]
    assert votes[3] == (0.0, -1)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("regex", {"pattern": "("}),
        ("regex", {"pattern": 5}),
        ("regex", {"ignore_case": "yes"}),
        ("numeric", {"tolerance": -1}),
        ("numeric", {"tolerance": True}),
        ("numeric", {"relative_tolerance": "1"}),
        ("choice", {"choices": "AB"}),
        ("choice", {"choices": ["a", " "]}),
        ("choice", {"pattern": "x"}),
    ],
)
def test_options_that_make_no_rule_are_refused(name: str, options: object) -> None:
    with pytest.raises(InvalidScoring, match=name):
        read_metric(name, json.dumps(options))


@pytest.mark.parametrize(
    ("name", "options", "target", "problem"),
    [
        ("numeric", {}, "several", "the target 'several' names no number"),
        ("regex", {}, "a(", "the target 'a(' is not a regular expression: missing )"),
        ("regex", {}, "a" * 5001, "the target has 5001 characters, and a pattern at most 5000"),
        ("choice", {"choices": ["yes", "no"]}, "maybe", "the target 'maybe' is none of the choices yes, no"),
        ("pearson", {}, "seven", "the target 'seven' is not a number"),
        ("exact_match", {}, None, "it has no target"),
    ],
)
def test_a_target_that_does_not_fit_is_given_without_an_answer(
    name: str, options: object, target: str | None, problem: str
) -> None:
    metric = read_metric(name, json.dumps(options))
    with pytest.raises(ScoringImpossible) as unfit:
        check_target(metric, ScoringTarget(texts=() if target is None else (target,)))
    assert str(unfit.value).startswith(problem)


@pytest.mark.parametrize(
    ("name", "options", "target"),
    [
        ("numeric", {}, "about 7 km"),
        ("regex", {}, "(a+)+$"),
        ("regex", {"pattern": r"\d"}, "("),
        ("choice", {}, "(b)"),
        ("pearson", {}, "7"),
        ("exact_match", {}, ""),
        ("rougeL_max", {}, "whatever"),
    ],
)
def test_a_target_that_some_answer_may_reach_fits(name: str, options: object, target: str) -> None:
    check_target(read_metric(name, json.dumps(options)), ScoringTarget(texts=(target,)))
