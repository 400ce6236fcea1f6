"""Suites, samples and what is wrong with a document, from their messages."""

import json

from pydantic import JsonValue

from proctor.v1 import sample_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1 import suite_service_pb2 as suite_pb2
from services.gateway.errors import SuiteFault
from services.gateway.proto_words import output_word
from services.gateway.suites.http_suite_bodies import (
    ChatTurn,
    Expected,
    MetricUsed,
    SampleShown,
    SuiteListed,
    TaskListed,
)


def suite_listed(suite: scheduler_pb2.SuiteInfo) -> SuiteListed:
    return SuiteListed(
        suite=suite.suite,
        description=suite.description,
        version=suite.version or None,
        digest=suite.digest or None,
        problem=suite.problem or None,
        tasks=[_task_listed(task) for task in suite.tasks],
    )


def suite_fault(problem: suite_pb2.SuiteProblem) -> SuiteFault:
    return SuiteFault(problem.file, problem.line, problem.key, problem.problem)


def sample_shown(request: suite_pb2.ShowSampleRequest, response: suite_pb2.ShowSampleResponse) -> SampleShown:
    sample, scoring = response.sample, response.scoring
    return SampleShown(
        suite=request.suite,
        task=request.task,
        row=request.row,
        prompt=sample.prompt.text if sample.prompt.HasField("text") else None,
        messages=[ChatTurn(role=turn.role, content=turn.content) for turn in sample.prompt.messages],
        choices=list(sample.choices),
        expected=_expected(sample.target),
        stop=list(response.stop),
        max_tokens=response.max_tokens or None,
        output_type=output_word(scoring.output_type),
        metrics=[MetricUsed(metric=use.name, options=_json(use.options_json)) for use in scoring.metrics],
        filters=_json(scoring.filters_json),
        cluster=sample.cluster or None,
        digest=sample.digest.hex(),
        document=_json(sample.doc_json),
        dataset=response.dataset,
        dataset_revision=response.dataset_revision,
        is_stand_in=response.is_stand_in,
    )


def _task_listed(task: scheduler_pb2.TaskInfo) -> TaskListed:
    return TaskListed(
        task=task.task,
        version=task.version,
        output_type=output_word(task.output_type),
        metrics=list(task.metrics),
        dataset=task.dataset,
    )


def _expected(target: sample_pb2.Target) -> Expected:
    return Expected(
        choice=target.choice if target.HasField("choice") else None,
        right_choices=list(target.right_choices),
        texts=list(target.texts),
        wrong_texts=list(target.wrong_texts),
    )


def _json(text: str) -> JsonValue:
    """Null where there is none, and for the NaN that a source may have written."""
    value: JsonValue = json.loads(text, parse_constant=lambda _: None) if text else None
    return value
