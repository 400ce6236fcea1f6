"""Orders on the wire: what is unset stays unset."""

from typing import Any

from google.protobuf import json_format, struct_pb2

from proctor.v1 import run_pb2, sample_pb2
from proctor.values.scoring import MetricUse
from services.scheduler import errors
from services.scheduler.proto_words import (
    PRIORITIES,
    PROMPT_FORMS,
    SCORING_METHODS,
    TRUNCATIONS,
    Number,
    Word,
    word_of,
)
from services.scheduler.runs.orders.run_order import GenerationParams, Priority, RunOrder, Truncation

_UNSPECIFIED_METHOD = run_pb2.SCORING_METHOD_UNSPECIFIED
_UNSPECIFIED_FORM = run_pb2.PROMPT_FORM_UNSPECIFIED
_PARAM_FIELDS = (
    "temperature",
    "top_p",
    "top_k",
    "max_tokens",
    "seed",
    "repetition_penalty",
    "context_tokens",
)


def order_from_proto(order: run_pb2.RunOrder) -> RunOrder:
    return RunOrder(
        suite=order.suite,
        model=order.model,
        project_id=order.project_id,
        tasks=tuple(dict.fromkeys(order.tasks)),
        limit=order.limit if order.HasField("limit") else None,
        num_fewshot=order.num_fewshot if order.HasField("num_fewshot") else None,
        rollouts=order.rollouts if order.HasField("rollouts") else 1,
        priority=_word("priority", PRIORITIES, order.priority) or _usual_priority(order),
        params=params_from_proto(order.params),
        scoring_method=_word("scoring_method", SCORING_METHODS, order.scoring_method),
        truncation=_word("truncation", TRUNCATIONS, order.truncation) or Truncation.NONE,
        prompt_form=_word("prompt_form", PROMPT_FORMS, order.prompt_form),
        reuse_answers=order.reuse_answers,
        max_cost=order.max_cost if order.HasField("max_cost") else None,
        stream_answers=order.stream_answers,
        base_url=order.base_url,
        dataset_id=order.dataset_id,
        metrics=tuple(MetricUse(use.name, use.options_json) for use in order.metrics),
        line_models=tuple(dict.fromkeys(order.line_models)),
        completion_window_seconds=(
            order.completion_window_seconds if order.HasField("completion_window_seconds") else None
        ),
    )


def _usual_priority(order: run_pb2.RunOrder) -> Priority:
    return Priority.NORMAL if order.dataset_id else Priority.HIGH


def order_to_proto(order: RunOrder) -> run_pb2.RunOrder:
    return run_pb2.RunOrder(
        project_id=order.project_id,
        suite=order.suite,
        tasks=order.tasks,
        model=order.model,
        limit=order.limit,
        num_fewshot=order.num_fewshot,
        rollouts=order.rollouts,
        priority=PRIORITIES[order.priority],
        params=params_to_proto(order.params),
        scoring_method=SCORING_METHODS[order.scoring_method] if order.scoring_method else _UNSPECIFIED_METHOD,
        truncation=TRUNCATIONS[order.truncation],
        prompt_form=PROMPT_FORMS[order.prompt_form] if order.prompt_form else _UNSPECIFIED_FORM,
        reuse_answers=order.reuse_answers,
        max_cost=order.max_cost,
        stream_answers=order.stream_answers,
        base_url=order.base_url,
        dataset_id=order.dataset_id,
        metrics=[sample_pb2.MetricUse(name=use.name, options_json=use.options_json) for use in order.metrics],
        line_models=order.line_models,
        completion_window_seconds=order.completion_window_seconds,
    )


def params_from_proto(params: run_pb2.GenerationParams) -> GenerationParams:
    given = {field.name: value for field, value in params.ListFields()}
    values = {name: given[name] for name in _PARAM_FIELDS if name in given}
    return GenerationParams(**values, provider_params=_plain(params.provider_params))


def _plain(value: object) -> Any:
    """As `json_format` does it, but with NaN, which the order refuses by a sentence."""
    if isinstance(value, struct_pb2.Struct):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, struct_pb2.ListValue):
        return [_plain(item) for item in value]
    return value


def params_to_proto(params: GenerationParams) -> run_pb2.GenerationParams:
    message = run_pb2.GenerationParams(
        temperature=params.temperature,
        top_p=params.top_p,
        top_k=params.top_k,
        max_tokens=params.max_tokens,
        seed=params.seed,
        repetition_penalty=params.repetition_penalty,
        context_tokens=params.context_tokens,
    )
    if params.provider_params:
        json_format.ParseDict(dict(params.provider_params), message.provider_params)
    return message


def _word(field: str, words: dict[Word, Number], number: int) -> Word | None:
    word = word_of(words, number)
    if word is None and number != 0:
        sentence = f"{field} has the unknown value {number}. Take one that this version of Proctor knows."
        raise errors.InvalidParameter(field=f"order.{field}", sentence=sentence)
    return word
