"""The body of a request that orders the same as a run did."""

import math
from collections.abc import Mapping
from typing import Any

from proctor.v1 import run_pb2, sample_pb2
from proctor.values.names.model_name import split_model
from proctor.wire.comparison_notes import compares
from proctor.wire.enums import word_of
from proctor.wire.well_known import read_struct
from services.gateway.http.paths import BENCHMARKING, DATASET_RUNS
from services.gateway.http.presentation import json_value

_WORDS = (
    ("priority", "priority", run_pb2.Priority),
    ("scoring_method", "scoring_method", run_pb2.ScoringMethod),
    ("prompt_form", "prompt_form", run_pb2.PromptForm),
    ("truncate", "truncation", run_pb2.Truncation),
    ("reasoning", "reasoning", run_pb2.Reasoning),
)
# Of words that are the default, so that only what was chosen is repeated.
_DEFAULTS = frozenset({("truncate", "none"), ("reasoning", "separate")})

# A data set is scored by generation, without examples, whatever its order says.
_ONLY_OF_SUITES = frozenset({"num_fewshot", "scoring_method"})
# Verdicts are asked for in one form.
_ONLY_OF_ANSWERS = frozenset({*_ONLY_OF_SUITES, "prompt_form", "truncate", "reasoning"})


def repeating_path(run: run_pb2.Run) -> str:
    if run.order.HasField("judge"):
        return f"{BENCHMARKING}/judgements/{run.order.judge.run_id}"
    return f"{DATASET_RUNS if run.order.dataset_id else BENCHMARKING}/run"


def repeating_body(run: run_pb2.Run) -> dict[str, Any]:
    """A `DatasetRunRequest`, `JudgeRequest` or `RunRequest`, by what the run is over; without defaults."""
    order = run.order
    if order.HasField("judge"):
        return _judging_body(order)
    if order.dataset_id:
        body: dict[str, Any] = {"model_id": order.model, "dataset_id": order.dataset_id}
        body |= {"base_url": order.base_url} if order.base_url else {}
        named = {
            "metrics": [_metric(each) for each in order.metrics],
            "line_models": [*order.line_models],
            "completion_window": window_text(order),
        }
    else:
        provider, model = split_model(order.model)
        config = {"provider": provider, "model": model}
        config |= {"base_url": order.base_url} if order.base_url else {}
        body = {"suite": repeated_suite(run), "config": config}
        body |= {"judges": []} if order.without_judges else {}
        named = {"tasks": [*order.tasks]}
    options = chosen_options(order)
    if order.dataset_id:
        options = {name: value for name, value in options.items() if name not in _ONLY_OF_SUITES}
    params = params_of(order)
    named["judges"] = [named_judge(each) for each in order.judges]
    if order.HasField("until_decided"):
        named["until_decided"] = _until_decided(order.until_decided)
    given = {name: value for name, value in named.items() if value}
    return body | {"project_id": order.project_id} | given | options | ({"params": params} if params else {})


def named_judge(judge: run_pb2.NamedJudge) -> dict[str, str]:
    texts = {"prompt": judge.prompt, "document": judge.document, "scale": judge.scale}
    return {"model_id": judge.model, **{name: text for name, text in texts.items() if text}}


def _until_decided(wanted: run_pb2.UntilDecided) -> dict[str, Any]:
    margin = {"margin_points": wanted.margin_points} if wanted.HasField("margin_points") else {}
    return {"against_model": wanted.against_model, "alpha": wanted.alpha, **margin}


def _judging_body(order: run_pb2.RunOrder) -> dict[str, Any]:
    """With the whole judge prompt: the installed one may be another by now."""
    params = params_of(order)
    return {
        "model_id": order.model,
        "document": order.judge.document,
        **({} if compares(order.judge) else {"scale": order.judge.scale}),
        "project_id": order.project_id,
        **({"against": order.judge.against_run_id} if order.judge.against_run_id else {}),
        **({"against_target": True} if order.judge.against_target else {}),
        **({"base_url": order.base_url} if order.base_url else {}),
        **judging_options(order),
        **({"params": params} if params else {}),
    }


def judging_options(order: run_pb2.RunOrder) -> dict[str, Any]:
    """`chosen_options` of a judge, by its own names: the rollouts of a judging run are repetitions."""
    chosen = chosen_options(order).items()
    options = {name: value for name, value in chosen if name not in _ONLY_OF_ANSWERS}
    repetitions = options.pop("rollouts", None)
    return {**({"repetitions": repetitions} if repetitions else {}), **options}


def repeated_suite(run: run_pb2.Run) -> str:
    """The suite with the version that was evaluated: its latest one may be another by now."""
    name = run.order.suite
    return f"{name}@{run.suite_version}" if run.suite_version and "@" not in name else name


def chosen_options(order: run_pb2.RunOrder) -> dict[str, Any]:
    """Options that runs over suites and over data sets have, by their names in the REST API."""
    numbers = {
        name: getattr(order, name)
        for name in ("limit", "num_fewshot", "rollouts", "max_cost")
        if order.HasField(name)
    }
    words = {name: word_of(enum, number) for name, field, enum in _WORDS if (number := getattr(order, field))}
    switches = {name: True for name in ("reuse_answers", "stream_answers") if getattr(order, name)}
    return {
        **numbers,
        **{name: word for name, word in words.items() if (name, word) not in _DEFAULTS},
        **switches,
    }


def params_of(order: run_pb2.RunOrder) -> dict[str, Any]:
    """Parameters of generation, the provider's own among them."""
    own = {field.name: value for field, value in order.params.ListFields() if field.name != "provider_params"}
    return own | {name: _whole(value) for name, value in read_struct(order.params.provider_params).items()}


def window_text(order: run_pb2.RunOrder) -> str:
    """The completion window as it is written; "" for none."""
    if not order.HasField("completion_window_seconds"):
        return ""
    minutes = math.ceil(order.completion_window_seconds / 60)
    return f"{minutes}m" if minutes % 60 else f"{minutes // 60}h"


def metric_options(metric: sample_pb2.MetricUse) -> Mapping[str, Any]:
    options: Mapping[str, Any] = json_value(metric.options_json) or {}
    return options


def _metric(metric: sample_pb2.MetricUse) -> str | dict[str, Any]:
    options = metric_options(metric)
    return {"name": metric.name, "options": options} if options else metric.name


def _whole(value: Any) -> Any:
    """A Struct has only fractions: 5.0 was written as 5."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
