"""What `proctor run` was asked for, and the order that it stands for."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from proctor.client_errors import Refused
from proctor.v1 import run_pb2

PRIORITIES: Mapping[str, run_pb2.Priority.ValueType] = {
    "high": run_pb2.PRIORITY_HIGH,
    "normal": run_pb2.PRIORITY_NORMAL,
    "low": run_pb2.PRIORITY_LOW,
}
SCORING_METHODS: Mapping[str, run_pb2.ScoringMethod.ValueType] = {
    "auto": run_pb2.SCORING_METHOD_UNSPECIFIED,
    "loglikelihood": run_pb2.SCORING_METHOD_LOGLIKELIHOOD,
    "generate": run_pb2.SCORING_METHOD_GENERATE,
    "constrained": run_pb2.SCORING_METHOD_CONSTRAINED,
}
_PROMPT_FORMS: Mapping[bool | None, run_pb2.PromptForm.ValueType] = {
    None: run_pb2.PROMPT_FORM_UNSPECIFIED,
    True: run_pb2.PROMPT_FORM_CHAT,
    False: run_pb2.PROMPT_FORM_COMPLETION,
}
_OWN_PARAMS = frozenset(run_pb2.GenerationParams.DESCRIPTOR.fields_by_name) - {"provider_params"}

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Selection:
    """Which samples are asked, and how often."""

    suite: str
    tasks: Sequence[str] = ()
    limit: int | None = None
    num_fewshot: int | None = None
    rollouts: int | None = None


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
    priority: str = "high"
    max_cost: float | None = None
    base_url: str = ""


def order_of(options: OrderOptions) -> run_pb2.RunOrder:
    """Ranges are checked by the scheduler; here only what the wire cannot carry is refused."""
    selection, form = options.selection, options.form
    params = _params(options)
    try:
        return run_pb2.RunOrder(
            project_id=options.project_id,
            suite=selection.suite,
            tasks=selection.tasks,
            model=options.model,
            base_url=options.base_url,
            limit=selection.limit,
            num_fewshot=selection.num_fewshot,
            rollouts=selection.rollouts,
            priority=chosen(PRIORITIES, options.priority, "--priority"),
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


def chosen(words: Mapping[str, T], word: str, option: str) -> T:
    if word not in words:
        raise Refused(f"{option} {word}: it must be one of {', '.join(words)}.", "INVALID_PARAMETER")
    return words[word]
