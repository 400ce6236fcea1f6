"""Converts plans and counts between messages and domain."""

from dataclasses import fields, replace

from proctor.v1 import run_pb2, sample_pb2, work_messages_pb2
from proctor.v1 import run_record_service_pb2 as run_record_pb2
from proctor.values.run import DEFAULT_MAX_FAILED_SHARE
from proctor.values.scoring import ScoringMethod, TaskScoring
from proctor.wire.convert import Codec
from proctor.wire.errors import UnknownNumber
from proctor.wire.values import COUNTS, GROUP, SCORING
from services.common.checked_fields import checked_choice, invalid_field
from services.results.runs.run_plan import (
    PlannedTask,
    RecordedProgress,
    RunFacts,
    RunPlan,
    TaskProvenance,
)

FACTS = Codec(RunFacts, run_record_pb2.RunFacts)
# A message has the provenance of a task among its other fields.
_TASK_FIELDS = {each.name for each in fields(PlannedTask)} - {"provenance"}
_PROVENANCE_FIELDS = {each.name for each in fields(TaskProvenance)}
TASK = Codec(PlannedTask, sample_pb2.PlannedTask, unpaired={"provenance", *_PROVENANCE_FIELDS})
PROVENANCE = Codec(TaskProvenance, sample_pb2.PlannedTask, unpaired=_TASK_FIELDS)


def plan_from_proto(request: run_record_pb2.OpenRunRequest) -> RunPlan:
    return RunPlan(
        request.run_id,
        tuple(_task_from_proto(task) for task in request.tasks),
        request.rollouts,
        checked_choice("scoring_method", ScoringMethod, request.scoring_method)
        if request.scoring_method
        else None,
        request.truncation == run_pb2.TRUNCATION_LEFT,
        FACTS.from_proto(request.facts),
        tuple(GROUP.from_proto(group) for group in request.groups),
        request.max_failed_share if request.HasField("max_failed_share") else DEFAULT_MAX_FAILED_SHARE,
        tuple(request.row_rollouts),
    )


def _task_from_proto(message: sample_pb2.PlannedTask) -> PlannedTask:
    try:
        return replace(TASK.from_proto(message), provenance=PROVENANCE.from_proto(message))
    except UnknownNumber as error:
        raise invalid_field("scoring.output_type", "must be given") from error


def scoring_from_proto(message: sample_pb2.TaskScoring) -> TaskScoring:
    try:
        return SCORING.from_proto(message)
    except UnknownNumber as error:
        raise invalid_field("scoring.output_type", "must be given") from error


def task_to_proto(task: PlannedTask) -> sample_pb2.PlannedTask:
    message = TASK.to_proto(task)
    PROVENANCE.fill(message, task.provenance)
    return message


def progress_to_proto(progress: RecordedProgress) -> work_messages_pb2.ProgressReport:
    message = COUNTS.to_proto(progress.counts)
    message.run_id = progress.run_id
    for shard, recorded in progress.shards.items():
        message.shards.add(shard=shard, recorded=recorded)
    return message
