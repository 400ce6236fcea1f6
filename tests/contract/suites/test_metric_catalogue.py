"""The catalogue of metrics agrees with scorers, figures and the schema of suites."""

import json
from itertools import chain
from pathlib import Path

import pytest

from proctor.values.metrics.catalogue import METRICS
from proctor.values.metrics.metric import MetricInput, ScoreKind, Unit
from proctor.values.metrics.names import ALIASES, full_name, headline_first, kind_of, unit_of
from proctor.values.outcome import Answer
from proctor.values.scoring import MetricUse, OutputType
from services.results.scoring.answer_filters import FILTERS, MAJORITY_VOTE, MAP, TAKE_FIRST_K
from services.results.scoring.answer_rules import RULE_READERS
from services.results.scoring.choice_metrics import GENERATED_METRICS, LOGLIKELIHOOD_METRICS
from services.results.scoring.compiled_scoring import (
    FILTER_OPTIONS,
    Average,
    InvalidScoring,
    compile_scoring,
    read_filters,
    read_metric,
)
from services.results.scoring.corpus_metrics import (
    CORPUS_METRICS,
    GIVEN_TEXT_FIGURES,
    LENGTHS,
    SHARE_FIGURES,
)
from services.results.scoring.score import ScoringTarget
from services.results.scoring.score_answer import score_answer
from services.results.scoring.text_metrics import MATCH_METRICS, OVERLAP_METRICS
from services.results.statistics.correlations import NUMBER_FIGURES
from services.results.statistics.label_figures import LABEL_FIGURES
from services.scheduler.planning.find_tasks import row_scoring
from services.scheduler.suites.format.metric_checks import option_problem, supported_metrics
from services.scheduler.suites.format.schema import suite_validator

SCHEMA = json.loads((Path(__file__).parents[3] / "suites" / "task.schema.json").read_text())
EXAMPLES = {
    "average": "macro",
    "regexes_to_ignore": [","],
    "pattern": "x",
    "tolerance": 0.1,
    "relative_tolerance": 1,
    "choices": ["yes", "no"],
    "labels": {"yes": 1, "no": 0},
    "weights": [1, 2],
}


OF_GIVEN_TEXTS = [each for each in OutputType if each.is_of_given_text]


def of_output(output_type: OutputType) -> set[str]:
    return {name for name, metric in METRICS.items() if metric.inputs_of(output_type)}


def test_the_catalogue_lets_through_what_results_scores() -> None:
    executed = {name for name, metric in METRICS.items() if MetricInput.ROLLOUT in metric.inputs}
    of_texts = {*MATCH_METRICS, *OVERLAP_METRICS, *CORPUS_METRICS, *NUMBER_FIGURES, *RULE_READERS, *executed}
    assert of_output(OutputType.GENERATE_UNTIL) == of_texts
    assert of_output(OutputType.MULTIPLE_CHOICE) == set(LOGLIKELIHOOD_METRICS)
    given = {name for name in METRICS if any(METRICS[name].inputs_of(each) for each in OF_GIVEN_TEXTS)}
    assert given == {"acc", *LENGTHS}
    in_words = {name for name in LOGLIKELIHOOD_METRICS if not METRICS[name].needs_logprobs}
    assert in_words == set(GENERATED_METRICS)


def test_the_kinds_of_scores_are_those_that_statistics_has_figures_of() -> None:
    assert {name for name in METRICS if kind_of(name) is ScoreKind.LABELS} == set(LABEL_FIGURES)
    assert {name for name in METRICS if kind_of(name).is_correlation} == set(NUMBER_FIGURES)
    shares = {name for name, metric in METRICS.items() if metric.aggregation in SHARE_FIGURES}
    counted = {name for name in METRICS if kind_of(name) is ScoreKind.COUNTS}
    assert counted == {*CORPUS_METRICS, *LENGTHS, *shares}
    assert {METRICS[name].aggregation for name in LENGTHS} == set(GIVEN_TEXT_FIGURES)


def test_a_figure_has_the_kind_and_the_unit_of_its_metric_through_any_filter_and_over_rollouts() -> None:
    assert (kind_of("exact_match,strict"), unit_of("rougeL_max,none")) == (ScoreKind.JUDGED, Unit.POINTS)
    assert {kind_of("pass@8"), kind_of("pass^2,none"), kind_of("rougeL_acc")} == {ScoreKind.JUDGED}
    assert (kind_of("score"), unit_of("score"), unit_of("")) == (ScoreKind.GRADED, None, None)
    assert {unit_of(name) for name in ("mcc", "pearson", "spearman")} == {Unit.COEFFICIENT}


def test_an_alias_stands_for_one_metric_where_none_has_that_name() -> None:
    aliases = [metric.alias for metric in METRICS.values() if metric.alias]
    assert len(aliases) == len(ALIASES)
    assert of_output(OutputType.GENERATE_UNTIL).isdisjoint(aliases)
    assert full_name("f1", ["squad_f1"]) == "squad_f1"
    assert full_name("f1", ["f1", "squad_f1"]) == "f1"
    assert full_name("unknown", ["acc"]) == "unknown"


def test_the_first_metric_of_a_task_may_be_its_headline() -> None:
    difference, best, share = (MetricUse(f"bleu_{name}") for name in ("diff", "max", "acc"))
    assert headline_first([difference, best, share]) == (best, difference, share)
    assert headline_first([best, difference]) == (best, difference)
    assert headline_first([difference]) == (difference,)


def test_answer_to_a_row_is_held_against_its_target_without_white_space_at_its_ends() -> None:
    scoring = compile_scoring(row_scoring((MetricUse("exact_match"),)))
    for text, expected in ((" four\n", 1.0), ("four", 1.0), ("fo ur", 0.0), (" \n", 0.0)):
        score = score_answer(scoring, ScoringTarget(texts=("four",)), Answer(text))
        assert score.scores == {"exact_match": expected}
    assert row_scoring(()).filters_json == ""


def test_an_order_may_name_what_needs_only_a_target_by_name_and_alias() -> None:
    assert {"exact_match", "numeric", "squad_f1", "f1", "rouge", "pearson"} <= set(supported_metrics())
    assert {"acc", "accuracy", "pass@1", "reward", "bleu_diff"}.isdisjoint(supported_metrics())


def test_a_suite_file_may_name_the_metrics_of_the_catalogue() -> None:
    assert SCHEMA["$defs"]["metric_name"]["enum"] == list(METRICS)


@pytest.mark.parametrize("name", METRICS)
def test_results_reads_the_options_of_the_catalogue_and_no_other(name: str) -> None:
    allowed = [option.name for option in METRICS[name].options]
    read_metric(name, json.dumps({option: EXAMPLES.get(option, True) for option in allowed}))
    with pytest.raises(InvalidScoring, match="no option 'flavour'"):
        read_metric(name, '{"flavour": true}')


def test_an_option_of_a_name_has_one_schema() -> None:
    options = list(chain.from_iterable(metric.options for metric in METRICS.values()))
    for option in options:
        assert all(other.schema == option.schema for other in options if other.name == option.name)


def test_what_a_metric_needs_is_a_key_of_a_task() -> None:
    assert {each.task_key for each in MetricInput if each.task_key} <= SCHEMA["$defs"]["task"][
        "properties"
    ].keys()


def test_the_averages_of_f1_are_those_of_the_schema() -> None:
    assert SCHEMA["$defs"]["metric"]["properties"]["average"]["enum"] == [str(one) for one in Average]


def test_the_filters_of_a_suite_file_are_those_that_results_knows() -> None:
    named = SCHEMA["$defs"]["filter_function"]["enum"]
    assert set(named) == {*FILTERS, MAJORITY_VOTE, TAKE_FIRST_K}
    own: dict[str, dict[str, object]] = {
        MAP: {"mapping_dict": {"a": 1}, "default_value": "b"},
        TAKE_FIRST_K: {"k": 2},
    }
    pattern: dict[str, object] = {"regex_pattern": "x", "group_select": -1}
    for function in named:
        options = own.get(function, pattern if function in FILTER_OPTIONS else {})
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
