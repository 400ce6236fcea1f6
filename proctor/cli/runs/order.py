"""The order of `proctor run`: its options as one value, and the message made from them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from proctor.cli.options import json_or_text, metric_use
from proctor.cli.render.words import enum_value
from proctor.client.errors import Refused
from proctor.v1 import run_pb2
from proctor.values.run import window_seconds

_PROMPT_FORMS: Mapping[bool | None, run_pb2.PromptForm.ValueType] = {
    None: run_pb2.PROMPT_FORM_UNSPECIFIED,
    True: run_pb2.PROMPT_FORM_CHAT,
    False: run_pb2.PROMPT_FORM_COMPLETION,
}
_OWN_PARAMS = frozenset(run_pb2.GenerationParams.DESCRIPTOR.fields_by_name) - {"provider_params"}


@dataclass(frozen=True, slots=True)
class Selection:
    """The samples of a suite or of a data set, and how often each is sent."""

    suite: str = ""
    dataset: str = ""
    tasks: Sequence[str] = ()
    limit: int | None = None
    num_fewshot: int | None = None
    rollouts: int | None = None


@dataclass(frozen=True, slots=True)
class DatasetOptions:
    """For a data set only. `window` is a text such as "24h"."""

    metrics: Sequence[str] = ()
    line_models: Sequence[str] = ()
    window: str = ""


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """How samples are sent and scored."""

    scoring: str = "auto"
    is_chat: bool | None = None
    is_truncated_left: bool = False
    is_reusing_answers: bool = False
    is_streamed: bool = False


@dataclass(frozen=True, slots=True)
class OrderOptions:
    """`params` are fields of GenerationParams; `extra` are NAME=VALUE texts, which override them."""

    model: str
    selection: Selection
    base_url: str = ""
    dataset: DatasetOptions = field(default_factory=DatasetOptions)
    form: AnswerForm = field(default_factory=AnswerForm)
    params: Mapping[str, int | float | None] = field(default_factory=dict)
    extra: Sequence[str] = ()
    project_id: int = 0
    priority: str = ""
    max_cost: float | None = None


def order_of(options: OrderOptions) -> run_pb2.RunOrder:
    """Raises Refused for contradictions and unknown words; the scheduler checks the ranges."""
    _refuse_contradictions(options)
    selection, dataset, form = options.selection, options.dataset, options.form
    params = _params(options)
    try:
        return run_pb2.RunOrder(
            project_id=options.project_id,
            suite=selection.suite,
            dataset_id=selection.dataset,
            metrics=[metric_use(text) for text in dataset.metrics],
            line_models=dataset.line_models,
            completion_window_seconds=_window_seconds(dataset.window) if dataset.window else None,
            tasks=selection.tasks,
            model=options.model,
            base_url=options.base_url,
            limit=selection.limit,
            num_fewshot=selection.num_fewshot,
            rollouts=selection.rollouts,
            priority=enum_value(run_pb2.Priority, options.priority, "--priority"),
            params=params if params.ListFields() else None,
            scoring_method=enum_value(run_pb2.ScoringMethod, form.scoring, "--scoring", unset="auto"),
            truncation=run_pb2.TRUNCATION_LEFT if form.is_truncated_left else run_pb2.TRUNCATION_NONE,
            prompt_form=_PROMPT_FORMS[form.is_chat],
            max_cost=options.max_cost,
            reuse_answers=form.is_reusing_answers,
            stream_answers=form.is_streamed,
        )
    except ValueError as error:
        raise _refused(f"A number of the order is too large: {error}.") from error


def refuse_out_of_range(order: run_pb2.RunOrder) -> None:
    """Rejects some orders before a whole stack is started for them; the scheduler would reject them too."""
    if order.HasField("limit") and order.limit < 1:
        raise _refused(f"limit must be at least 1, not {order.limit}.")
    temperature = order.params.temperature
    if not 0 <= temperature <= 2:
        raise _refused(f"temperature must be at least 0 and at most 2, not {temperature:g}.")


def _refuse_contradictions(options: OrderOptions) -> None:
    selection, dataset = options.selection, options.dataset
    if bool(selection.suite) == bool(selection.dataset):
        either = "--suite NAME or --dataset FILE"
        both = f"A run is over a suite or over a data set, not both: leave out one of {either}."
        raise _refused(both if selection.suite else f"Name what the model is evaluated on: {either}.")
    only_suites = {
        "--task": selection.tasks,
        "--num-fewshot": selection.num_fewshot is not None,
        "--scoring": options.form.scoring != "auto",
    }
    only_datasets = {"--metric": dataset.metrics, "--alias": dataset.line_models, "--window": dataset.window}
    misplaced = [
        name for name, given in (only_suites if selection.dataset else only_datasets).items() if given
    ]
    if misplaced:
        kind = "suites" if selection.dataset else "data sets"
        raise _refused(f"{misplaced[0]} is for {kind} only: leave it out.")


def _window_seconds(text: str) -> int:
    try:
        return window_seconds(text)
    except ValueError as error:
        raise _refused(f"--window {text}: {error}.") from error


def _params(options: OrderOptions) -> run_pb2.GenerationParams:
    given: dict[str, Any] = {name: value for name, value in options.params.items() if value is not None}
    given |= dict(map(_named_value, options.extra))
    params = run_pb2.GenerationParams()
    for name, value in given.items():
        try:
            if name in _OWN_PARAMS:
                setattr(params, name, value)
            else:
                params.provider_params.update({name: value})
        except (TypeError, ValueError) as error:
            raise _refused(f"The parameter {name} cannot be {value!r}: {error}.") from error
    return params


def _named_value(text: str) -> tuple[str, Any]:
    name, separator, value = text.partition("=")
    if not (name and separator):
        raise _refused(f"--param {text}: write it as NAME=VALUE, such as --param min_p=0.1.")
    return name, json_or_text(value)


def _refused(sentence: str) -> Refused:
    return Refused(sentence, "INVALID_PARAMETER")
