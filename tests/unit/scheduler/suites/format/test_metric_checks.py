"""Metrics as they are ordered for a data set: names, options, and what is wrong with them in one sentence."""

import json

import pytest

from proctor.values.scoring import MetricUse
from services.common.errors import ErrorKind
from services.scheduler.suites.errors import InvalidMetric, UnknownDatasetMetric
from services.scheduler.suites.format.metric_checks import (
    MAX_METRICS,
    resolve_dataset_metrics,
    supported_metrics,
)


def test_short_names_stand_for_the_metrics_of_free_text() -> None:
    settled = resolve_dataset_metrics([MetricUse("f1"), MetricUse("rouge"), MetricUse("contains")])
    assert [use.name for use in settled] == ["squad_f1", "rougeL_max", "contains"]


def test_no_metrics_are_as_good_as_any() -> None:
    assert resolve_dataset_metrics([]) == ()


def test_options_are_settled_in_one_form() -> None:
    one = resolve_dataset_metrics([MetricUse("numeric", '{"tolerance":0.5, "relative_tolerance":0}')])
    other = resolve_dataset_metrics([MetricUse("numeric", '{"relative_tolerance": 0, "tolerance": 0.5}')])
    assert one == other
    assert resolve_dataset_metrics([MetricUse("regex", "{}")]) == (MetricUse("regex"),)


def test_metrics_that_need_more_of_a_row_than_its_target_are_not_among_them() -> None:
    assert {"exact_match", "contains", "regex", "numeric", "choice", "f1", "rouge"} <= {*supported_metrics()}
    assert not {"acc", "mc2", "bleu_acc", "rougeL_diff"} & {*supported_metrics()}


@pytest.mark.parametrize("name", ["acc", "bleu_diff", "accuracy", "", "x" * 5000])
def test_an_unknown_metric_is_reported_with_those_there_are(name: str) -> None:
    with pytest.raises(UnknownDatasetMetric, match="exact_match, contains, regex") as reported:
        resolve_dataset_metrics([MetricUse(name)])
    refusal = reported.value
    assert (refusal.kind, refusal.reason) == (ErrorKind.INVALID, "UNKNOWN_METRIC")
    assert len(refusal.message) < 500


@pytest.mark.parametrize(
    ("use", "sentence"),
    [
        (MetricUse("regex", '{"pattern": "a(b"}'), "pattern: .* is not a regular expression: missing"),
        (MetricUse("regex", '{"pattern": "[[:alpha:]]"}'), r"pattern: .* such as \[:alpha:\] is not known"),
        (MetricUse("regex", '{"pattern": "x{4000000000}"}'), "pattern: .* written out it has 4,000,000,001"),
        (MetricUse("regex", '{"pattern": ""}'), "pattern: it is empty"),
        (
            MetricUse("regex", '{"pattern": 5}'),
            "pattern: 5 is not of type 'string': put the number in quotes",
        ),
        (MetricUse("regex", '{"ignore_case": 1}'), "ignore_case: 1 is not of type 'boolean'"),
        (MetricUse("regex", json.dumps({"pattern": "x" * 5001})), "pattern: it has 5001 characters"),
        (
            MetricUse("exact_match", '{"regexes_to_ignore": ["("]}'),
            r"regexes_to_ignore: '\(' is not a regular",
        ),
        (MetricUse("numeric", '{"tolerance": -1}'), "tolerance: -1 is less than the minimum of 0"),
        (MetricUse("numeric", '{"tolerance": NaN}'), "NaN is not a finite number"),
        (MetricUse("numeric", '{"tolerance": 1e999}'), "1e999 is not a finite number"),
        (MetricUse("numeric", '{"pattern": "x"}'), "pattern: there is no such option; it has relative_tol"),
        (MetricUse("choice", '{"choices": ["yes", "Yes "]}'), "choices: each needs letters that no other"),
        (MetricUse("choice", '{"choices": ["yes", " "]}'), "choices: each needs letters that no other"),
        (MetricUse("choice", '{"choices": "AB"}'), "choices: 'AB' is not of type 'array'"),
        (MetricUse("choice", '{"choices": ["A"]}'), r"choices: \['A'\] is too short"),
        (MetricUse("f1", '{"average": "macro"}'), "average: there is no such option; it has none"),
        (MetricUse("contains", "[1]"), "its options must be a JSON object"),
        (MetricUse("contains", "{"), "its options are not JSON"),
        (MetricUse("contains", "[" * 100_000), "its options are not JSON"),
    ],
)
def test_what_is_wrong_with_an_option_is_one_sentence(use: MetricUse, sentence: str) -> None:
    with pytest.raises(InvalidMetric, match=sentence) as reported:
        resolve_dataset_metrics([MetricUse("squad_em"), use])
    refusal = reported.value
    assert (refusal.kind, refusal.reason) == (ErrorKind.INVALID, "INVALID_PARAMETER")
    assert refusal.facts["metric"] == use.name


def test_the_same_metric_twice_is_refused_whatever_it_is_called() -> None:
    with pytest.raises(InvalidMetric, match="squad_f1 is there twice"):
        resolve_dataset_metrics([MetricUse("f1"), MetricUse("squad_f1")])
    with pytest.raises(InvalidMetric, match=f"at most {MAX_METRICS} metrics"):
        resolve_dataset_metrics([MetricUse("contains")] * (MAX_METRICS + 1))
