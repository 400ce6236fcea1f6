"""Documents of users, what is wrong with them, and shown samples on the wire."""

from proctor.v1 import suite_service_pb2 as messages
from services.scheduler.shards.proto_samples import sample_to_proto, scoring_to_proto
from services.scheduler.suites.format.suite_document import SuiteDocument, SuiteProblem
from services.scheduler.suites.show_sample import RenderedSample, SampleRequest


def document_from_proto(message: messages.SuiteDocument) -> SuiteDocument:
    return SuiteDocument(message.text, message.file_name, dict(message.files))


def problem_to_proto(problem: SuiteProblem) -> messages.SuiteProblem:
    return messages.SuiteProblem(
        file=problem.file, line=problem.line, key=problem.key, problem=problem.problem
    )


def wanted_from_proto(request: messages.ShowSampleRequest) -> SampleRequest:
    num_fewshot = request.num_fewshot if request.HasField("num_fewshot") else None
    return SampleRequest(request.suite, request.task, request.row, num_fewshot)


def shown_to_proto(shown: RenderedSample) -> messages.ShowSampleResponse:
    generation = shown.task.generation
    return messages.ShowSampleResponse(
        sample=sample_to_proto(shown.sample),
        scoring=scoring_to_proto(shown.task.scoring),
        stop=generation.until if generation else (),
        max_tokens=generation.max_tokens if generation else 0,
        dataset=shown.dataset,
        dataset_revision=shown.revision,
        is_stand_in=shown.is_stand_in,
    )
