"""Samples and planned tasks as messages to results."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict

from proctor.v1 import run_record_service_pb2, sample_pb2
from proctor.values.generation import GenerationParams
from proctor.values.scoring import OutputType, ScoringMethod
from proctor.wire.values import PRICE, SCORING
from proctor.wire.well_known import time_to_proto
from services.scheduler.planning.ports import TaskToOpen
from services.scheduler.runs.lifecycle.planned_task import PlannedTask, merged_params
from services.scheduler.runs.lifecycle.run import Run


def request_digest(run: Run, task: PlannedTask) -> bytes:
    """SHA-256 over model, server, parameters, stops, and how choices and prompts are put.

    Not included: the pool, the number of rollouts (an answer belongs to one), and whether answers stream.
    Log-likelihood scored choices have no generation parameters. Parameters of a data set's row are part of
    the sample; unset ones are the engine's.
    """
    order = run.order
    is_choice = task.output_type is OutputType.MULTIPLE_CHOICE
    method = run.scoring_method if is_choice else ScoringMethod.GENERATE
    is_loglikelihood = method is ScoringMethod.LOGLIKELIHOOD
    request: dict[str, object] = {
        "model": order.model,
        "base_url": order.base_url,
        "scoring_method": method,
        "prompt_form": order.prompt_form,
        "truncation": order.truncation,
        "params": None if is_loglikelihood else asdict(merged_params(order.params, task)),
        "stop": None if is_loglikelihood else task.stop,
    }
    if order.dataset_id:
        request["use_engine_defaults"] = True
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).digest()


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
        scoring=SCORING.to_proto(task.scoring),
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
    return run_record_service_pb2.RunFacts(
        suite=run.order.subject.partition("@")[0],
        suite_version=run.suite_version,
        model=run.order.model,
        project_id=run.order.project_id,
        user=run.user,
        created_at=time_to_proto(run.created_at),
        limit=run.order.limit,
        num_fewshot=run.order.num_fewshot,
        missing_tasks=missing_tasks,
        price=PRICE.to_proto(run.price) if run.price else None,
        dataset_name=run.dataset_name,
    )
