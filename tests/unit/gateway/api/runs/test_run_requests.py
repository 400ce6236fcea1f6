"""Orders over HTTP become orders for the scheduler."""

from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from pydantic import ValidationError

from proctor.v1 import run_pb2
from services.gateway.api.runs.requests import RunRequest


def body(**more: Any) -> dict[str, Any]:
    return {
        "project_id": 1,
        "suite": "glue",
        "config": {"provider": "vllm", "model": "Qwen/Qwen3-0.6B"},
        **more,
    }


def with_ollama(**params: Any) -> dict[str, Any]:
    return body(config={"provider": "ollama", "model": "mistral:latest", "ollama_params": params})


def nested(levels: int) -> dict[str, Any]:
    return {"deeper": nested(levels - 1)} if levels else {}


def test_provider_and_model_become_one_name() -> None:
    assert RunRequest.model_validate(body()).to_order().model == "vllm/Qwen/Qwen3-0.6B"


def test_what_is_not_given_stays_unset() -> None:
    order = RunRequest.model_validate(body()).to_order()
    assert not order.HasField("limit")
    assert not order.HasField("params")
    assert order.priority == run_pb2.PRIORITY_HIGH


def test_answers_are_streamed_and_reused_only_where_asked() -> None:
    order = RunRequest.model_validate(body()).to_order()
    assert (order.stream_answers, order.reuse_answers) == (False, False)
    assert RunRequest.model_validate(body(stream_answers=True)).to_order().stream_answers
    assert RunRequest.model_validate(body(reuse_answers=True)).to_order().reuse_answers


def test_ollama_parameters_get_our_names_and_unknown_ones_reach_the_provider() -> None:
    request = with_ollama(num_predict=5, num_ctx=2048, repeat_penalty=1.1, temperature=0, mirostat=2)
    params = RunRequest.model_validate(request).to_order().params
    assert params.max_tokens == 5
    assert params.context_tokens == 2048
    assert params.repetition_penalty == pytest.approx(1.1)
    assert params.HasField("temperature")
    assert MessageToDict(params.provider_params) == {"mirostat": 2.0}


@pytest.mark.parametrize(
    "request_body",
    [
        body(limit=0),
        body(limit=-1),
        body(rollouts=101),
        body(num_fewshot=-1),
        body(priority="urgent"),
        body(limit=2**31),
        body(config={"provider": "a/b", "model": "c"}),
        body(limits=5),
        with_ollama(temperature=9),
        with_ollama(top_p=1.1),
        with_ollama(top_k=101),
        body(params={}, config={"provider": "a", "model": "b", "params": {}}),
        with_ollama(num_ctx="x"),
        with_ollama(top_p=-0.1),
        body(params={"logit_bias": {"1": 10**400}}),
        body(params={"stop_words": ["\ud800"]}),
        body(params=nested(17)),
        body(suite="\ud800"),
        body(tasks=["\ud800"]),
    ],
)
def test_values_out_of_range_are_refused(request_body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        RunRequest.model_validate(request_body)


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"context_tokens": "x"}, "context_tokens is called num_ctx here"),
        ({"max_tokens": 5, "num_predict": 6}, "max_tokens is called num_predict here"),
        ({"repetition_penalty": 1.1}, "repetition_penalty is called repeat_penalty here"),
    ],
)
def test_parameter_of_ollama_goes_by_one_name(params: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence):
        RunRequest.model_validate(with_ollama(**params))


def test_top_p_may_be_0_over_http_too() -> None:
    params = RunRequest.model_validate(body(params={"top_p": 0})).to_order().params
    assert params.HasField("top_p")
    assert params.top_p == 0


def test_scoring_form_and_truncation_reach_the_order() -> None:
    order = RunRequest.model_validate(
        body(scoring_method="constrained", prompt_form="chat", truncate="left", reasoning="keep")
    ).to_order()
    assert order.scoring_method == run_pb2.SCORING_METHOD_CONSTRAINED
    assert order.prompt_form == run_pb2.PROMPT_FORM_CHAT
    assert order.truncation == run_pb2.TRUNCATION_LEFT
    assert order.reasoning == run_pb2.REASONING_KEEP
    unset = RunRequest.model_validate(body()).to_order()
    assert unset.scoring_method == run_pb2.SCORING_METHOD_UNSPECIFIED
    assert unset.prompt_form == run_pb2.PROMPT_FORM_UNSPECIFIED
    assert unset.reasoning == run_pb2.REASONING_SEPARATE
