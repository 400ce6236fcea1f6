"""What `proctor run` was asked for, and the order that it stands for."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from proctor.cli.parsing import PRIORITIES, SCORING_METHODS, chosen, metric_use
from proctor.client.errors import Refused
from proctor.completion_window import window_seconds
from proctor.v1 import run_pb2

_PROMPT_FORMS: Mapping[bool | None, run_pb2.PromptForm.ValueType] = {
    None: run_pb2.PROMPT_FORM_UNSPECIFIED,
    True: run_pb2.PROMPT_FORM_CHAT,
    False: run_pb2.PROMPT_FORM_COMPLETION,
}
_OWN_PARAMS = frozenset(run_pb2.GenerationParams.DESCRIPTOR.fields_by_name) - {"provider_params"}


@dataclass(frozen=True, slots=True)
class Selection:
    """Which samples are asked, and how often: those of a suite or of a data set."""

    suite: str = ""
    tasks: Sequence[str] = ()
    limit: int | None = None
    num_fewshot: int | None = None
    rollouts: int | None = None
    dataset: str = ""


@dataclass(frozen=True, slots=True)
class DatasetTerms:
    """What is said of a run over a data set only. `window` is text such as "24h"."""

    metrics: Sequence[str] = ()
    line_models: Sequence[str] = ()
    window: str = ""


@dataclass(frozen=True, slots=True)
class Form:
    """How they are asked and scored."""

    scoring: str = "auto"
    is_chat: bool | None = None
    is_truncated_left: bool = False
    is_reusing_answers: bool = False
    is_streamed: bool = False


@dataclass(frozen=True, slots=True)
class OrderOptions:
    """`params` are GenerationParams by name; `extra` are NAME=VALUE texts and win over them."""

    selection: Selection
    model: str
    form: Form = field(default_factory=Form)
    params: Mapping[str, int | float | None] = field(default_factory=dict)
    extra: Sequence[str] = ()
    project_id: int = 0
    # Unset it is that of what is ordered.
    priority: str = ""
    max_cost: float | None = None
    base_url: str = ""
    terms: DatasetTerms = field(default_factory=DatasetTerms)


def order_of(options: OrderOptions) -> run_pb2.RunOrder:
    """Ranges are checked by the scheduler; here only what the wire cannot carry is refused."""
    refuse_contradictions(options)
    selection, form, terms = options.selection, options.form, options.terms
    params = _params(options)
    try:
        return run_pb2.RunOrder(
            project_id=options.project_id,
            suite=selection.suite,
            dataset_id=selection.dataset,
            metrics=[metric_use(text) for text in terms.metrics],
            line_models=terms.line_models,
            completion_window_seconds=_window_seconds(terms.window) if terms.window else None,
            tasks=selection.tasks,
            model=options.model,
            base_url=options.base_url,
            limit=selection.limit,
            num_fewshot=selection.num_fewshot,
            rollouts=selection.rollouts,
            priority=_priority(options),
            params=params if params.ListFields() else None,
            scoring_method=chosen(SCORING_METHODS, form.scoring, "--scoring"),
            truncation=run_pb2.TRUNCATION_LEFT if form.is_truncated_left else run_pb2.TRUNCATION_NONE,
            prompt_form=_PROMPT_FORMS[form.is_chat],
            max_cost=options.max_cost,
            reuse_answers=form.is_reusing_answers,
            stream_answers=form.is_streamed,
        )
    except ValueError as error:
        raise Refused(f"A number of the order is too large: {error}.", "INVALID_PARAMETER") from error


def refuse_out_of_range(order: run_pb2.RunOrder) -> None:
    """What the scheduler would refuse as well: for who would start a whole stack to hear it."""
    if order.HasField("limit") and order.limit < 1:
        raise Refused(f"limit must be at least 1, not {order.limit}.", "INVALID_PARAMETER")
    temperature = order.params.temperature
    if not 0 <= temperature <= 2:
        raise Refused(
            f"temperature must be at least 0 and at most 2, not {temperature:g}.", "INVALID_PARAMETER"
        )


def refuse_contradictions(options: OrderOptions) -> None:
    """What is said of a suite makes no sense of a data set, and the other way round."""
    selection, terms = options.selection, options.terms
    if bool(selection.suite) == bool(selection.dataset):
        either = "--suite NAME or --dataset FILE"
        both = f"A run is over a suite or over a data set, not both: leave out one of {either}."
        none = f"Say what the model is examined by: {either}."
        raise Refused(both if selection.suite else none, "INVALID_PARAMETER")
    of_suites = {
        "--task": selection.tasks,
        "--num-fewshot": selection.num_fewshot is not None,
        "--scoring": options.form.scoring != "auto",
    }
    of_datasets = {"--metric": terms.metrics, "--alias": terms.line_models, "--window": terms.window}
    astray = [name for name, given in (of_suites if selection.dataset else of_datasets).items() if given]
    if astray:
        kind = "a suite and says nothing of a data set" if selection.dataset else "a data set, not of a suite"
        raise Refused(f"{astray[0]} is of {kind}: leave it out.", "INVALID_PARAMETER")


def _priority(options: OrderOptions) -> run_pb2.Priority.ValueType:
    if not options.priority:
        return run_pb2.PRIORITY_UNSPECIFIED if options.selection.dataset else run_pb2.PRIORITY_HIGH
    return chosen(PRIORITIES, options.priority, "--priority")


def _window_seconds(text: str) -> int:
    try:
        return window_seconds(text)
    except ValueError as error:
        raise Refused(f"--window {text}: {error}.", "INVALID_PARAMETER") from error


def _params(options: OrderOptions) -> run_pb2.GenerationParams:
    given: dict[str, Any] = {name: value for name, value in options.params.items() if value is not None}
    given |= dict(_parsed(text) for text in options.extra)
    params = run_pb2.GenerationParams()
    for name, value in given.items():
        try:
            if name in _OWN_PARAMS:
                setattr(params, name, value)
            else:
                params.provider_params.update({name: value})
        except (TypeError, ValueError) as error:
            raise Refused(
                f"The parameter {name} cannot be {value!r}: {error}.", "INVALID_PARAMETER"
            ) from error
    return params


def _parsed(text: str) -> tuple[str, Any]:
    name, separator, value = text.partition("=")
    if not (name and separator):
        raise Refused(
            f"--param {text}: write it as NAME=VALUE, such as --param min_p=0.1.", "INVALID_PARAMETER"
        )
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
