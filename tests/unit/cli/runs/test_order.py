"""Options of `proctor run` become an order; what the wire cannot carry is refused in one sentence."""

from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from typer.testing import CliRunner

from proctor.cli.__main__ import app
from proctor.cli.runs.order import OrderOptions, labels_of, order_of, refuse_out_of_range
from proctor.client.errors import Refused
from proctor.exit_codes import ExitCode
from proctor.v1 import run_pb2


def options(**given: Any) -> OrderOptions:
    """Over the suite s unless the case says otherwise."""
    given.setdefault("suite", "" if "dataset" in given else "s")
    return OrderOptions("m", **given)


def test_what_is_not_given_stays_unset() -> None:
    order = order_of(options(suite="glue"))
    assert not order.HasField("limit")
    assert not order.HasField("max_cost")
    assert not order.HasField("params")
    assert order.scoring_method == run_pb2.SCORING_METHOD_UNSPECIFIED
    assert order.prompt_form == run_pb2.PROMPT_FORM_UNSPECIFIED


def test_name_tags_and_note_stand_beside_the_order() -> None:
    given = options(name="nightly", tag=["ci", "b"], note="x")
    assert labels_of(given) == run_pb2.RunLabels(name="nightly", tags=["ci", "b"], note="x")
    assert order_of(given) == order_of(options())


def test_everything_given_is_in_the_order() -> None:
    given = options(
        suite="glue",
        task=["sst2", "rte"],
        limit=0,
        num_fewshot=3,
        rollouts=2,
        scoring_method="generate",
        chat=True,
        truncate_left=True,
        stream_answers=True,
        reuse_answers=True,
        temperature=0.0,
        project=7,
        priority="low",
        max_cost=2.5,
        base_url="http://inside:8000/v1",
    )
    order = order_of(given)
    assert list(order.tasks) == ["sst2", "rte"]
    assert (order.limit, order.num_fewshot, order.rollouts, order.project_id) == (0, 3, 2, 7)
    assert order.params.HasField("temperature")
    assert not order.params.HasField("seed")
    assert order.prompt_form == run_pb2.PROMPT_FORM_CHAT
    assert order.truncation == run_pb2.TRUNCATION_LEFT
    assert (order.stream_answers, order.reuse_answers) == (True, True)
    assert order.priority == run_pb2.PRIORITY_LOW
    assert order.max_cost == 2.5
    assert order.base_url == "http://inside:8000/v1"


def test_known_parameters_are_typed_and_others_reach_the_provider() -> None:
    extra = ["top_p=0.5", "min_p=0.1", "mode=fast", "stop_token_ids=[1, 2]"]
    params = order_of(options(param=extra)).params
    assert params.top_p == 0.5
    assert MessageToDict(params.provider_params) == {
        "min_p": 0.1,
        "mode": "fast",
        "stop_token_ids": [1.0, 2.0],
    }


@pytest.mark.parametrize(
    ("given", "word"),
    [
        (options(priority="urgent"), "--priority urgent"),
        (options(scoring_method="best"), "--scoring-method best"),
        (options(limit=2**40), "too large"),
        (options(judge=["a/b"], no_judge=True), "--judge names a judge and --no-judge wants none"),
        (options(dataset="ds_1", no_judge=True), "--no-judge is for suites only"),
        (options(judge=["a/b:"]), "MODEL:PROMPT@SCALE"),
        (options(param=["top_p"]), "NAME=VALUE"),
        (options(param=["top_k=many"]), "top_k cannot be 'many'"),
    ],
)
def test_what_the_wire_cannot_carry_is_refused(given: OrderOptions, word: str) -> None:
    with pytest.raises(Refused, match=word):
        order_of(given)


@pytest.mark.parametrize(
    ("given", "word"),
    [
        (options(limit=0), "limit must be at least 1, not 0"),
        (options(temperature=2.5), "temperature .* not 2.5"),
        (options(param=["temperature=NaN"]), "temperature .* not nan"),
    ],
)
def test_what_needs_no_scheduler_to_be_refused_is_refused_without(given: OrderOptions, word: str) -> None:
    with pytest.raises(Refused, match=word):
        refuse_out_of_range(order_of(given))


@pytest.mark.parametrize("limit", [None, 1])
def test_order_in_its_ranges_is_let_through(limit: int | None) -> None:
    refuse_out_of_range(order_of(options(limit=limit, temperature=2.0)))


def test_order_over_a_data_set_says_how_its_answers_are_scored_and_by_when_it_ends() -> None:
    metrics = [
        "exact_match",
        "numeric:tolerance=0.01",
        "regex:pattern=^a=b:c",
        '{"metric": "choice", "choices": ["x"]}',
    ]
    order = order_of(options(dataset="ds_1", metric=metrics, line_model=["gpt-4o"], completion_window="90m"))
    assert (order.dataset_id, order.suite, list(order.line_models)) == ("ds_1", "", ["gpt-4o"])
    assert [(metric.name, metric.options_json) for metric in order.metrics] == [
        ("exact_match", ""),
        ("numeric", '{"tolerance": 0.01}'),
        ("regex", '{"pattern": "^a=b:c"}'),
        ("choice", '{"choices": ["x"]}'),
    ]
    assert (order.completion_window_seconds, order.priority) == (5400, run_pb2.PRIORITY_UNSPECIFIED)
    assert order_of(options(suite="glue")).priority == run_pb2.PRIORITY_UNSPECIFIED


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (options(suite=""), "Name what the model is evaluated on: --suite NAME or"),
        (options(suite="glue", dataset="ds_1"), "A run is over a suite or over a data set"),
        (options(dataset="ds_1", task=["rte"]), "--task is for suites only"),
        (options(dataset="ds_1", num_fewshot=0), "--num-fewshot is for suites only"),
        (options(dataset="ds_1", scoring_method="generate"), "--scoring-method is for suites only"),
        (options(metric=["f1"]), "--metric is for data sets only"),
        (options(line_model=["x"]), "--line-model is for data sets only"),
        (options(completion_window="1h"), "--completion-window is for data sets only"),
        (options(dataset="ds_1", completion_window="1d"), "--completion-window 1d: a window is written in"),
        (options(dataset="ds_1", metric=["numeric:x"]), "--metric numeric:x: write it as"),
        (options(dataset="ds_1", metric=['{"f": 1}']), '--metric {"f": 1}: write it as'),
    ],
)
def test_what_makes_no_sense_together_is_refused_in_a_sentence(given: OrderOptions, sentence: str) -> None:
    with pytest.raises(Refused) as raised:
        order_of(given)
    assert raised.value.message.startswith(sentence)


@pytest.mark.parametrize("count", ["0", "101"])
def test_rollouts_that_no_run_has_are_refused_by_the_option(count: str) -> None:
    ended = CliRunner().invoke(app, ["run", "--suite", "s", "--model", "m", "--rollouts", count])
    assert ended.exit_code == ExitCode.REFUSED
    assert "Invalid value for '--rollouts'" in ended.output
