"""Samples and planned tasks as messages to results."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict

from google.protobuf.timestamp_pb2 import Timestamp

from proctor.v1 import run_record_service_pb2, sample_pb2
from services.scheduler.planning.ports import TaskToOpen
from services.scheduler.proto_words import OUTPUT_TYPES
from services.scheduler.runs.lifecycle.planned_task import PlannedTask, merged_params
from services.scheduler.runs.lifecycle.proto import price_to_proto
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.orders.run_order import GenerationParams, ScoringMethod
from services.scheduler.suites.rendering.sample import ChatMessage, Sample, Target
from services.scheduler.suites.suite import OutputType, TaskGroup, TaskScoring


def request_digest(run: Run, task: PlannedTask) -> bytes:
    """SHA-256 over model, server, parameters, stops, and how choices and prompts are put.

    Of no account: which pool asks, how many rollouts there are (an answer is one rollout's), and whether the
    answer streams. Choices that are weighed have no parameters of generation. What a row of a data set says
    itself is part of the sample; what neither says is the engine's.
    """
    order = run.order
    is_choice = task.output_type is OutputType.MULTIPLE_CHOICE
    method = run.scoring_method if is_choice else ScoringMethod.GENERATE
    is_weighed = method is ScoringMethod.LOGLIKELIHOOD
    request: dict[str, object] = {
        "model": order.model,
        "base_url": order.base_url,
        "scoring_method": method,
        "prompt_form": order.prompt_form,
        "truncation": order.truncation,
        "params": None if is_weighed else asdict(merged_params(order.params, task)),
        "stop": None if is_weighed else task.stop,
    }
    if order.dataset_id:
        request["use_engine_defaults"] = True
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).digest()


def sample_to_proto(sample: Sample) -> sample_pb2.Sample:
    message = sample_pb2.Sample()
    fill_sample(message, sample)
    return message


def fill_sample(message: sample_pb2.Sample, sample: Sample) -> None:
    """Piece by piece, where it lies, and only what it has: anything else takes half as long again.

    A message handed over is copied, and to say that there is nothing costs as much as to say something.
    """
    message.position = sample.position
    message.doc_id = sample.doc_id
    message.digest = sample.digest
    if sample.cluster:
        message.cluster = sample.cluster
    if sample.doc_json:
        message.doc_json = sample.doc_json
    if sample.row_id:
        message.row_id = sample.row_id
    if sample.params_json:
        message.params_json = sample.params_json
    if sample.choices:
        message.choices.extend(sample.choices)
    if sample.messages:
        _fill_messages(message.prompt, sample.messages)
    else:
        message.prompt.text = sample.prompt
    _fill_target(message.target, sample.target)


def _fill_messages(message: sample_pb2.Prompt, messages: Sequence[ChatMessage]) -> None:
    for turn in messages:
        said = message.messages.add()
        said.role = turn.role
        said.content = turn.content
        if turn.fields_json:
            said.fields_json = turn.fields_json


def _fill_target(message: sample_pb2.Target, target: Target) -> None:
    if target.choice is not None:
        message.choice = target.choice
    if target.texts:
        message.texts.extend(target.texts)
    if target.right_choices:
        message.right_choices.extend(target.right_choices)
    if target.wrong_texts:
        message.wrong_texts.extend(target.wrong_texts)
    if target.choice_texts:
        message.choice_texts.extend(target.choice_texts)


def task_to_proto(task: TaskToOpen, run: Run) -> sample_pb2.PlannedTask:
    planned = task.planned
    is_text = planned.output_type is OutputType.GENERATE_UNTIL
    params = merged_params(run.order.params, planned) if is_text else GenerationParams()
    return sample_pb2.PlannedTask(
        task=planned.task,
        version=planned.version,
        sample_set_id=planned.sample_set_id,
        first_sample=planned.first_sample,
        sample_count=planned.sample_count,
        scoring=scoring_to_proto(task.scoring),
        num_fewshot=planned.num_fewshot,
        is_stand_in=planned.is_stand_in,
        dataset=planned.dataset,
        dataset_revision=planned.dataset_revision,
        stop=planned.stop,
        max_tokens=params.max_tokens or 0,
        temperature=params.temperature,
        request_digest=request_digest(run, planned),
    )


def facts_to_proto(run: Run, missing_tasks: Sequence[str]) -> run_record_service_pb2.RunFacts:
    created_at = Timestamp()
    created_at.FromDatetime(run.created_at)
    return run_record_service_pb2.RunFacts(
        suite=run.order.subject.partition("@")[0],
        suite_version=run.suite_version,
        model=run.order.model,
        project_id=run.order.project_id,
        user=run.user,
        created_at=created_at,
        limit=run.order.limit,
        num_fewshot=run.order.num_fewshot,
        missing_tasks=missing_tasks,
        price=price_to_proto(run.price),
        dataset_name=run.dataset_name,
    )


def group_to_proto(group: TaskGroup) -> sample_pb2.TaskGroup:
    return sample_pb2.TaskGroup(
        group=group.name,
        tasks=group.tasks,
        metrics=[
            sample_pb2.GroupMetric(metric=metric.name, is_weighted_by_size=metric.is_weighted_by_size)
            for metric in group.metrics
        ],
    )


def scoring_to_proto(scoring: TaskScoring) -> sample_pb2.TaskScoring:
    return sample_pb2.TaskScoring(
        output_type=OUTPUT_TYPES[scoring.output_type],
        metrics=[
            sample_pb2.MetricUse(name=metric.name, options_json=metric.options_json)
            for metric in scoring.metrics
        ],
        filters_json=scoring.filters_json,
        target_delimiter=scoring.target_delimiter,
    )
