"""Orders as messages: what is unset stays unset."""

from proctor.v1 import run_pb2
from proctor.values.generation import GenerationParams
from proctor.values.priority import Priority, default_priority
from proctor.values.scoring import PromptForm, ScoringMethod, Truncation
from proctor.wire.convert import E, member_of, number_of
from proctor.wire.values import METRIC_USE, PARAMS
from services.scheduler.errors import InvalidParameter
from services.scheduler.runs.orders.run_order import RunOrder


def order_from_proto(order: run_pb2.RunOrder) -> RunOrder:
    priority = _member("priority", Priority, order.priority)
    return RunOrder(
        suite=order.suite,
        model=order.model,
        project_id=order.project_id,
        tasks=tuple(dict.fromkeys(order.tasks)),
        limit=order.limit if order.HasField("limit") else None,
        num_fewshot=order.num_fewshot if order.HasField("num_fewshot") else None,
        rollouts=order.rollouts if order.HasField("rollouts") else 1,
        priority=priority or default_priority(is_dataset=bool(order.dataset_id)),
        params=PARAMS.from_proto(order.params),
        scoring_method=_member("scoring_method", ScoringMethod, order.scoring_method),
        truncation=_member("truncation", Truncation, order.truncation) or Truncation.NONE,
        prompt_form=_member("prompt_form", PromptForm, order.prompt_form),
        reuse_answers=order.reuse_answers,
        max_cost=order.max_cost if order.HasField("max_cost") else None,
        stream_answers=order.stream_answers,
        base_url=order.base_url,
        dataset_id=order.dataset_id,
        metrics=tuple(METRIC_USE.from_proto(use) for use in order.metrics),
        line_models=tuple(dict.fromkeys(order.line_models)),
        completion_window_seconds=(
            order.completion_window_seconds if order.HasField("completion_window_seconds") else None
        ),
    )


def order_to_proto(order: RunOrder) -> run_pb2.RunOrder:
    return run_pb2.RunOrder(
        project_id=order.project_id,
        suite=order.suite,
        tasks=order.tasks,
        model=order.model,
        limit=order.limit,
        num_fewshot=order.num_fewshot,
        rollouts=order.rollouts,
        priority=number_of(order.priority),
        params=params_to_proto(order.params),
        scoring_method=number_of(order.scoring_method),
        truncation=number_of(order.truncation),
        prompt_form=number_of(order.prompt_form),
        reuse_answers=order.reuse_answers,
        max_cost=order.max_cost,
        stream_answers=order.stream_answers,
        base_url=order.base_url,
        dataset_id=order.dataset_id,
        metrics=[METRIC_USE.to_proto(use) for use in order.metrics],
        line_models=order.line_models,
        completion_window_seconds=order.completion_window_seconds,
    )


def params_to_proto(params: GenerationParams) -> run_pb2.GenerationParams:
    return PARAMS.to_proto(params)


def _member(field: str, enum: type[E], number: int) -> E | None:
    member = member_of(enum, number)
    if member is None and number != 0:
        sentence = f"{field} has the unknown value {number}. Take one that this version of Proctor knows."
        raise InvalidParameter(field=f"order.{field}", sentence=sentence)
    return member
