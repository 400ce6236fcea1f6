"""Converts plans and counts between messages and domain."""

from collections.abc import Sequence
from datetime import UTC

from proctor.v1 import outcome_pb2, run_pb2, run_record_service_pb2, sample_pb2, work_messages_pb2
from services.results.checked_fields import InvalidField, checked_choice
from services.results.runs.run_counts import RunCounts
from services.results.runs.run_plan import (
    GroupMetric,
    PlannedTask,
    RunFacts,
    RunPlan,
    TaskGroup,
    TaskProvenance,
)
from services.results.scoring.recipe import MetricUse, ScoringMethod, ScoringRecipe
from services.results.scoring.task_scoring import OutputType
from services.results.values import ModelPrice, Timing, TokenUsage

_OUTPUT_TYPES = {
    sample_pb2.OUTPUT_TYPE_MULTIPLE_CHOICE: OutputType.MULTIPLE_CHOICE,
    sample_pb2.OUTPUT_TYPE_GENERATE_UNTIL: OutputType.GENERATE_UNTIL,
}
_OUTPUT_TYPES_TO_PROTO = {word: number for number, word in _OUTPUT_TYPES.items()}


def plan_from_proto(request: run_record_service_pb2.OpenRunRequest) -> RunPlan:
    return RunPlan(
        request.run_id,
        tuple(_task_from_proto(task) for task in request.tasks),
        request.rollouts,
        checked_choice("scoring_method", ScoringMethod, request.scoring_method),
        request.truncation == run_pb2.TRUNCATION_LEFT,
        _facts_from_proto(request.facts),
        tuple(_group_from_proto(group) for group in request.groups),
    )


def _facts_from_proto(message: run_record_service_pb2.RunFacts) -> RunFacts:
    return RunFacts(
        suite=message.suite,
        suite_version=message.suite_version,
        model=message.model,
        project_id=message.project_id,
        user=message.user,
        created_at=message.created_at.ToDatetime(UTC) if message.HasField("created_at") else None,
        limit=message.limit if message.HasField("limit") else None,
        num_fewshot=message.num_fewshot if message.HasField("num_fewshot") else None,
        missing_tasks=tuple(message.missing_tasks),
        price=_price_from_proto(message.price) if message.HasField("price") else None,
        dataset_name=message.dataset_name,
    )


def _price_from_proto(message: run_pb2.ModelPrice) -> ModelPrice:
    has_cached = message.HasField("cached_input_per_million")
    return ModelPrice(
        message.input_per_million,
        message.output_per_million,
        message.cached_input_per_million if has_cached else None,
        message.currency,
    )


def _group_from_proto(message: sample_pb2.TaskGroup) -> TaskGroup:
    metrics = tuple(GroupMetric(use.metric, use.is_weighted_by_size) for use in message.metrics)
    return TaskGroup(message.group, tuple(message.tasks), metrics)


def _task_from_proto(message: sample_pb2.PlannedTask) -> PlannedTask:
    return PlannedTask(
        message.task,
        message.sample_set_id,
        message.first_sample,
        message.sample_count,
        recipe_from_proto(message.scoring),
        TaskProvenance(
            version=message.version,
            num_fewshot=message.num_fewshot,
            is_stand_in=message.is_stand_in,
            dataset=message.dataset,
            dataset_revision=message.dataset_revision,
            stop=tuple(message.stop),
            max_tokens=message.max_tokens,
            temperature=message.temperature if message.HasField("temperature") else None,
        ),
        message.request_digest,
    )


def recipe_from_proto(message: sample_pb2.TaskScoring) -> ScoringRecipe:
    if message.output_type not in _OUTPUT_TYPES:
        raise InvalidField(field="scoring.output_type", problem="must be given")
    return ScoringRecipe(
        _OUTPUT_TYPES[message.output_type],
        tuple(MetricUse(use.name, use.options_json) for use in message.metrics),
        message.filters_json,
        message.target_delimiter,
    )


def tasks_to_proto(tasks: Sequence[PlannedTask]) -> list[sample_pb2.PlannedTask]:
    return [_task_to_proto(task) for task in tasks]


def _task_to_proto(task: PlannedTask) -> sample_pb2.PlannedTask:
    origin, recipe = task.provenance, task.scoring
    return sample_pb2.PlannedTask(
        task=task.task,
        version=origin.version,
        sample_set_id=task.sample_set_id,
        first_sample=task.first_sample,
        sample_count=task.sample_count,
        scoring=sample_pb2.TaskScoring(
            output_type=_OUTPUT_TYPES_TO_PROTO[recipe.output_type],
            metrics=[
                sample_pb2.MetricUse(name=use.name, options_json=use.options_json) for use in recipe.metrics
            ],
            filters_json=recipe.filters_json,
            target_delimiter=recipe.target_delimiter,
        ),
        num_fewshot=origin.num_fewshot,
        is_stand_in=origin.is_stand_in,
        dataset=origin.dataset,
        dataset_revision=origin.dataset_revision,
        stop=origin.stop,
        max_tokens=origin.max_tokens,
        temperature=origin.temperature,
        request_digest=task.request_digest,
    )


def counts_to_proto(counts: RunCounts) -> work_messages_pb2.ProgressReport:
    return work_messages_pb2.ProgressReport(
        run_id=counts.run_id,
        epoch=counts.epoch,
        tasks=[
            work_messages_pb2.TaskCounts(
                task=task, recorded=count.recorded, failed=count.failed, unparsed=count.unparsed
            )
            for task, count in counts.tasks.items()
        ],
        shards=[
            work_messages_pb2.ShardCount(shard=shard, recorded=recorded)
            for shard, recorded in counts.shards.items()
        ],
        failures=counts.failures,
        environment=counts.environment,
        usage=usage_to_proto(counts.usage),
    )


def usage_to_proto(usage: TokenUsage) -> outcome_pb2.TokenUsage:
    return outcome_pb2.TokenUsage(
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        cached_tokens=usage.cached_tokens,
        reasoning_tokens=usage.reasoning_tokens,
    )


def timing_to_proto(timing: Timing) -> outcome_pb2.Timing:
    return outcome_pb2.Timing(
        total_seconds=timing.total_seconds,
        queue_seconds=timing.queue_seconds,
        first_token_seconds=timing.first_token_seconds,
        between_tokens_seconds=timing.between_tokens_seconds,
    )
