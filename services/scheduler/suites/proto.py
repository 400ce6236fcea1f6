"""Suites as messages."""

from proctor.v1 import scheduler_service_pb2
from proctor.v1 import suite_service_pb2 as messages
from proctor.wire.convert import number_of
from proctor.wire.values import SAMPLE, SCORING
from services.scheduler.suites.format.suite_document import SuiteDocument, SuiteProblem
from services.scheduler.suites.ports import BrokenSuite
from services.scheduler.suites.show_sample import SamplePreview, SampleRequest
from services.scheduler.suites.suite import SuiteSummary, TaskSummary


def document_from_proto(message: messages.SuiteDocument) -> SuiteDocument:
    return SuiteDocument(message.text, message.file_name, dict(message.files))


def problem_to_proto(problem: SuiteProblem) -> messages.SuiteProblem:
    return messages.SuiteProblem(
        file=problem.file, line=problem.line, key=problem.key, problem=problem.problem
    )


def wanted_from_proto(request: messages.ShowSampleRequest) -> SampleRequest:
    num_fewshot = request.num_fewshot if request.HasField("num_fewshot") else None
    return SampleRequest(request.suite, request.task, request.row, num_fewshot)


def shown_to_proto(shown: SamplePreview) -> messages.ShowSampleResponse:
    generation = shown.task.generation
    return messages.ShowSampleResponse(
        sample=SAMPLE.to_proto(shown.sample),
        scoring=SCORING.to_proto(shown.task.scoring),
        stop=generation.until if generation else (),
        max_tokens=generation.max_tokens if generation else 0,
        dataset=shown.dataset,
        dataset_revision=shown.revision,
        is_stand_in=shown.is_stand_in,
    )


def suite_to_proto(suite: SuiteSummary | BrokenSuite) -> scheduler_service_pb2.SuiteInfo:
    if isinstance(suite, BrokenSuite):
        return scheduler_service_pb2.SuiteInfo(
            suite=suite.name, problem=suite.problem, version=suite.version, digest=suite.digest
        )
    return scheduler_service_pb2.SuiteInfo(
        suite=suite.name,
        description=suite.description,
        tasks=[_task_info_to_proto(task) for task in suite.tasks],
        version=suite.version,
        digest=suite.digest,
    )


def _task_info_to_proto(task: TaskSummary) -> scheduler_service_pb2.TaskInfo:
    return scheduler_service_pb2.TaskInfo(
        task=task.name,
        version=task.version,
        output_type=number_of(task.output_type),
        metrics=task.metrics,
        dataset=task.dataset,
    )
