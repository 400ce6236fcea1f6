"""Options of `proctor run` become an order; what the wire cannot carry is refused in one sentence."""

import pytest
from google.protobuf.json_format import MessageToDict

from proctor.cli.runs.order import DatasetTerms, Form, OrderOptions, Selection, order_of, refuse_out_of_range
from proctor.client.errors import Refused
from proctor.v1 import run_pb2


def test_what_is_not_given_stays_unset() -> None:
    order = order_of(OrderOptions(Selection("glue"), "vllm/starter"))
    assert not order.HasField("limit")
    assert not order.HasField("max_cost")
    assert not order.HasField("params")
    assert order.scoring_method == run_pb2.SCORING_METHOD_UNSPECIFIED
    assert order.prompt_form == run_pb2.PROMPT_FORM_UNSPECIFIED


def test_everything_given_is_in_the_order() -> None:
    selection = Selection("glue", ["sst2", "rte"], 0, 3, 2)
    options = OrderOptions(
        selection,
        "vllm/starter",
        Form("generate", is_chat=True, is_truncated_left=True, is_streamed=True),
        {"temperature": 0.0, "seed": None},
        [],
        7,
        "low",
        2.5,
        "http://inside:8000/v1",
    )
    order = order_of(options)
    assert list(order.tasks) == ["sst2", "rte"]
    assert (order.limit, order.num_fewshot, order.rollouts, order.project_id) == (0, 3, 2, 7)
    assert order.params.HasField("temperature")
    assert not order.params.HasField("seed")
    assert order.prompt_form == run_pb2.PROMPT_FORM_CHAT
    assert order.truncation == run_pb2.TRUNCATION_LEFT
    assert order.stream_answers
    assert order.priority == run_pb2.PRIORITY_LOW
    assert order.max_cost == 2.5
    assert order.base_url == "http://inside:8000/v1"


def test_known_parameters_are_typed_and_others_reach_the_provider() -> None:
    extra = ["top_p=0.5", "min_p=0.1", "mode=fast", "stop_token_ids=[1, 2]"]
    params = order_of(OrderOptions(Selection("s"), "m", extra=extra)).params
    assert params.top_p == 0.5
    assert MessageToDict(params.provider_params) == {
        "min_p": 0.1,
        "mode": "fast",
        "stop_token_ids": [1.0, 2.0],
    }


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (OrderOptions(Selection("s"), "m", priority="urgent"), "--priority urgent"),
        (OrderOptions(Selection("s"), "m", Form("best")), "--scoring best"),
        (OrderOptions(Selection("s", limit=2**40), "m"), "too large"),
        (OrderOptions(Selection("s"), "m", extra=["top_p"]), "NAME=VALUE"),
        (OrderOptions(Selection("s"), "m", extra=["top_k=many"]), "top_k cannot be 'many'"),
    ],
)
def test_what_the_wire_cannot_carry_is_refused(options: OrderOptions, word: str) -> None:
    with pytest.raises(Refused, match=word):
        order_of(options)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (OrderOptions(Selection("s", limit=0), "m"), "limit must be at least 1, not 0"),
        (OrderOptions(Selection("s"), "m", params={"temperature": 2.5}), "temperature .* not 2.5"),
        (OrderOptions(Selection("s"), "m", extra=["temperature=NaN"]), "temperature .* not nan"),
    ],
)
def test_what_needs_no_scheduler_to_be_refused_is_refused_without(options: OrderOptions, word: str) -> None:
    with pytest.raises(Refused, match=word):
        refuse_out_of_range(order_of(options))


@pytest.mark.parametrize("selection", [Selection("s"), Selection("s", limit=1)])
def test_order_in_its_ranges_is_let_through(selection: Selection) -> None:
    refuse_out_of_range(order_of(OrderOptions(selection, "m", params={"temperature": 2.0})))


def test_order_over_a_data_set_says_how_its_answers_are_scored_and_by_when_it_ends() -> None:
    metrics = [
        "exact_match",
        "numeric:tolerance=0.01",
        "regex:pattern=^a=b:c",
        '{"metric": "choice", "choices": ["x"]}',
    ]
    terms = DatasetTerms(metrics, ["gpt-4o"], "90m")
    order = order_of(OrderOptions(Selection(dataset="ds_1"), "vllm/starter", terms=terms))
    assert (order.dataset_id, order.suite, list(order.line_models)) == ("ds_1", "", ["gpt-4o"])
    assert [(metric.name, metric.options_json) for metric in order.metrics] == [
        ("exact_match", ""),
        ("numeric", '{"tolerance": 0.01}'),
        ("regex", '{"pattern": "^a=b:c"}'),
        ("choice", '{"choices": ["x"]}'),
    ]
    assert (order.completion_window_seconds, order.priority) == (5400, run_pb2.PRIORITY_UNSPECIFIED)
    assert order_of(OrderOptions(Selection("glue"), "m")).priority == run_pb2.PRIORITY_HIGH


OVER = Selection(dataset="ds_1")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (OrderOptions(Selection(), "m"), "Say what the model is examined by: --suite NAME or"),
        (OrderOptions(Selection("glue", dataset="ds_1"), "m"), "A run is over a suite or over a data set"),
        (OrderOptions(Selection(dataset="ds_1", tasks=["rte"]), "m"), "--task is of a suite"),
        (OrderOptions(Selection(dataset="ds_1", num_fewshot=0), "m"), "--num-fewshot is of a suite"),
        (OrderOptions(OVER, "m", Form("generate")), "--scoring is of a suite"),
        (OrderOptions(Selection("s"), "m", terms=DatasetTerms(["f1"])), "--metric is of a data set"),
        (OrderOptions(Selection("s"), "m", terms=DatasetTerms((), ["x"])), "--alias is of a data set"),
        (OrderOptions(Selection("s"), "m", terms=DatasetTerms(window="1h")), "--window is of a data set"),
        (OrderOptions(OVER, "m", terms=DatasetTerms(window="1d")), "--window 1d: a window is written in"),
        (OrderOptions(OVER, "m", terms=DatasetTerms(["numeric:x"])), "--metric numeric:x: write it as"),
        (OrderOptions(OVER, "m", terms=DatasetTerms(['{"f": 1}'])), '--metric {"f": 1}: write it as'),
    ],
)
def test_what_makes_no_sense_together_is_refused_in_a_sentence(options: OrderOptions, sentence: str) -> None:
    with pytest.raises(Refused) as raised:
        order_of(options)
    assert raised.value.message.startswith(sentence)
