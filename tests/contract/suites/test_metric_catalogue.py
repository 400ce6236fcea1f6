"""The scheduler's catalogue of metrics and filters and the scorers of results have the same names."""

import json
from pathlib import Path

import pytest

from proctor.values.outcome import Answer
from proctor.values.scoring import SHORT_NAMES, MetricUse, OutputType
from services.results.scoring.answer_filters import FILTERS, MAJORITY_VOTE
from services.results.scoring.answer_rules import RULE_OPTIONS
from services.results.scoring.choice_metrics import LOGLIKELIHOOD_METRICS
from services.results.scoring.compiled_scoring import (
    EXECUTED,
    METRIC_OPTIONS,
    Average,
    compile_scoring,
    read_filters,
    read_metric,
)
from services.results.scoring.errors import InvalidScoring
from services.results.scoring.score import ScoringTarget
from services.results.scoring.score_answer import score_answer
from services.results.scoring.text_metrics import MATCH_METRICS, NUMBER_METRICS, OVERLAP_METRICS
from services.scheduler.planning.find_tasks import row_scoring
from services.scheduler.suites.format.metric_specs import METRICS, option_problem, options_of
from services.scheduler.suites.format.schema import suite_validator

SCHEMA = json.loads((Path(__file__).parents[3] / "suites" / "task.schema.json").read_text())


@pytest.mark.parametrize(
    ("output_type", "scored"),
    [
        (OutputType.MULTIPLE_CHOICE, frozenset(LOGLIKELIHOOD_METRICS)),
        (
            OutputType.GENERATE_UNTIL,
            frozenset([*MATCH_METRICS, *OVERLAP_METRICS, *NUMBER_METRICS, *RULE_OPTIONS, *EXECUTED]),
        ),
    ],
)
def test_the_catalogue_lets_through_what_results_scores(
    output_type: OutputType, scored: frozenset[str]
) -> None:
    assert {name for name, metric in METRICS.items() if output_type in metric.output_types} == scored


def test_short_names_of_metrics_are_those_of_metrics_over_free_text() -> None:
    assert all(OutputType.GENERATE_UNTIL in METRICS[name].output_types for name in SHORT_NAMES.values())
    of_text = {name for name, metric in METRICS.items() if OutputType.GENERATE_UNTIL in metric.output_types}
    assert of_text.isdisjoint(SHORT_NAMES)


def test_answer_to_a_row_is_held_against_its_target_without_white_space_at_its_ends() -> None:
    scoring = compile_scoring(row_scoring((MetricUse("exact_match"),)))
    for text, expected in ((" four\n", 1.0), ("four", 1.0), ("fo ur", 0.0), (" \n", 0.0)):
        score = score_answer(scoring, ScoringTarget(texts=("four",)), Answer(text))
        assert score.scores == {"exact_match": expected}
    assert row_scoring(()).filters_json == ""


def test_a_suite_file_may_name_the_metrics_of_the_catalogue() -> None:
    assert set(SCHEMA["$defs"]["metric_name"]["enum"]) == set(METRICS)


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_has_the_same_options_on_both_sides(name: str) -> None:
    allowed = {
        option for output_type in METRICS[name].output_types for option in options_of(name, output_type)
    }
    assert allowed == METRIC_OPTIONS.get(name, frozenset())
    examples = {
        "average": "macro",
        "regexes_to_ignore": [","],
        "pattern": "x",
        "tolerance": 0.1,
        "relative_tolerance": 1,
        "choices": ["yes", "no"],
    }
    read_metric(name, json.dumps({option: examples.get(option, True) for option in allowed}))
    with pytest.raises(InvalidScoring):
        read_metric(name, '{"flavour": true}')


def test_the_averages_of_f1_are_those_of_the_schema() -> None:
    assert SCHEMA["$defs"]["metric"]["properties"]["average"]["enum"] == [str(one) for one in Average]


def test_the_filters_of_a_suite_file_are_those_that_results_knows() -> None:
    named = SCHEMA["$defs"]["filter_function"]["enum"]
    assert set(named) == {*FILTERS, MAJORITY_VOTE}
    for function in named:
        options = {"regex_pattern": "x", "group_select": -1} if function == "regex" else {}
        [pipeline] = read_filters(
            json.dumps([{"name": "one", "filter": [{"function": function, **options}]}])
        )
        assert pipeline.is_majority == (function == MAJORITY_VOTE)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("pattern", value) for value in ("x", "", "(", 5, "x" * 5000, "x" * 5001, "[[:alpha:]]")),
        *(("tolerance", value) for value in (0, 0.5, -1, "1", True)),
        *(("relative_tolerance", value) for value in (0, 0.5, -1, "1", True)),
        *(("choices", value) for value in (["a", "b"], ["a"], "ab", ["a", ""], ["a", 1], ["a", "a"])),
        *(("choices", value) for value in ([f"{n}" for n in range(1000)], [f"{n}" for n in range(1001)])),
        *(("ignore_case", value) for value in (True, 1, "yes")),
        *(("ignore_punctuation", value) for value in (True, 1, "yes")),
        *(("ignore_numbers", value) for value in (True, 1, "yes")),
        *(("regexes_to_ignore", value) for value in ([], ["x"], ["("], "x", [1])),
        *(("average", value) for value in ("macro", "mean", 1)),
    ],
)
def test_an_option_may_be_what_the_schema_of_suites_says(option: str, value: object) -> None:
    of_schema = suite_validator(SCHEMA["$defs"]["metric"]["properties"][option]).is_valid(value)
    assert (option_problem(option, value) == "") == of_schema
