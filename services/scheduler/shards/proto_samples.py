"""Samples and planned tasks on their way to results."""

from proctor.v1 import sample_pb2
from services.scheduler.ports import TaskToOpen
from services.scheduler.proto_words import OUTPUT_TYPES
from services.scheduler.suites.sample import Sample
from services.scheduler.suites.task_definition import TaskScoring


def sample_to_proto(sample: Sample) -> sample_pb2.Sample:
    return sample_pb2.Sample(
        position=sample.position,
        doc_id=sample.doc_id,
        digest=sample.digest,
        prompt=sample_pb2.Prompt(text=sample.prompt),
        choices=sample.choices,
        target=sample_pb2.Target(choice=sample.target.choice, texts=sample.target.texts),
        cluster=sample.cluster,
    )


def task_to_proto(task: TaskToOpen) -> sample_pb2.PlannedTask:
    planned = task.planned
    return sample_pb2.PlannedTask(
        task=planned.task,
        version=planned.version,
        sample_set_id=planned.sample_set_id,
        first_sample=planned.first_sample,
        sample_count=planned.sample_count,
        scoring=_scoring_to_proto(task.scoring),
        num_fewshot=planned.num_fewshot,
        is_stand_in=planned.is_stand_in,
        dataset=planned.dataset,
        dataset_revision=planned.dataset_revision,
        stop=planned.stop,
        max_tokens=planned.max_tokens,
    )


def _scoring_to_proto(scoring: TaskScoring) -> sample_pb2.TaskScoring:
    return sample_pb2.TaskScoring(
        output_type=OUTPUT_TYPES[scoring.output_type],
        metrics=[
            sample_pb2.MetricUse(name=metric.name, options_json=metric.options_json)
            for metric in scoring.metrics
        ],
        filters_json=scoring.filters_json,
        target_delimiter=scoring.target_delimiter,
    )
