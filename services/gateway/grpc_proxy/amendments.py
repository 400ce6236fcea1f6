"""Requests that are changed or checked on their way: the user, a request id, and names of benchmarks."""

import uuid
from collections.abc import Callable
from typing import Any

from google.protobuf.message import Message

from proctor.v1.annotation_service_pb2 import (
    AnnotateAnswerRequest,
    FindUnannotatedRequest,
    GetAgreementRequest,
    ListAnnotationsRequest,
)
from proctor.v1.answer_service_pb2 import MarkAnswersRequest
from proctor.v1.batch_service_pb2 import CreateBatchRequest
from proctor.v1.comparison_service_pb2 import CompareRunsRequest, PlanSizeRequest
from proctor.v1.dataset_service_pb2 import UploadDatasetRequest
from proctor.v1.file_service_pb2 import UploadFileRequest
from proctor.v1.import_service_pb2 import ImportRunRequest
from proctor.v1.leaderboard_service_pb2 import (
    GetLeaderboardRequest,
    GetRatingsRequest,
    ListHistoryRequest,
)
from proctor.v1.results_service_pb2 import RecordContaminationRequest
from proctor.v1.rollout_service_pb2 import SubmitRolloutsRequest, UploadTasksRequest
from proctor.v1.schedule_service_pb2 import AddScheduleRequest
from proctor.v1.scheduler_service_pb2 import EstimateRunRequest, ListRunsRequest, SubmitRunRequest
from proctor.v1.suite_service_pb2 import AddSuiteRequest
from proctor.values.names.user import LOCAL_USER, Caller
from services.common.grpc.errors import parsed
from services.gateway.api.suites.schemas import without_version

# Takes the request and its caller.
Amend = Callable[[bytes, Caller], bytes]
NamesBenchmark = (
    CompareRunsRequest
    | GetLeaderboardRequest
    | GetRatingsRequest
    | ListHistoryRequest
    | ListRunsRequest
    | PlanSizeRequest
)


def unchanged(request: bytes, caller: Caller) -> bytes:  # noqa: ARG001  # an Amend
    return request


def _with_user(kind: type[Message], header: str = "") -> Amend:
    """Sets the user, and an empty request id, so that retries are idempotent.

    A request may name its user itself where neither a key nor the metadata names one.

    `header` is the field that holds both; "" means the message itself. A stream that does not begin with a
    header is left to its service to refuse.
    """

    def amend(request: bytes, caller: Caller) -> bytes:
        message = parsed(kind, request)
        if header and not message.HasField(header):
            return request
        target: Any = getattr(message, header) if header else message
        # A name that a key has proved cannot be replaced by the request.
        if caller.is_verified or caller.name != LOCAL_USER or not target.user:
            target.user = caller.name
        if "request_id" in target.DESCRIPTOR.fields_by_name:
            target.request_id = target.request_id or str(uuid.uuid4())
        return message.SerializeToString()

    return amend


def _without_version(kind: type[NamesBenchmark]) -> Amend:
    """Refuses a suite with a version: these calls look at all versions."""

    def check(request: bytes, caller: Caller) -> bytes:  # noqa: ARG001  # an Amend
        without_version(parsed(kind, request).benchmark, field="benchmark")
        return request

    return check


# By method; all other requests pass unchanged. Of a client stream the first message is amended.
AMENDMENTS: dict[str, Amend] = {
    "SubmitRun": _with_user(SubmitRunRequest),
    "AddSchedule": _with_user(AddScheduleRequest),
    "EstimateRun": _with_user(EstimateRunRequest),
    "AddSuite": _with_user(AddSuiteRequest),
    "MarkAnswers": _with_user(MarkAnswersRequest),
    "AnnotateAnswer": _with_user(AnnotateAnswerRequest),
    "RecordContamination": _with_user(RecordContaminationRequest),
    "FindUnannotated": _with_user(FindUnannotatedRequest),
    "ListAnnotations": _with_user(ListAnnotationsRequest),
    "GetAgreement": _with_user(GetAgreementRequest),
    "SubmitRollouts": _with_user(SubmitRolloutsRequest),
    "CreateBatch": _with_user(CreateBatchRequest),
    "UploadDataset": _with_user(UploadDatasetRequest, "header"),
    "UploadFile": _with_user(UploadFileRequest, "header"),
    "ImportRun": _with_user(ImportRunRequest, "header"),
    "UploadTasks": _with_user(UploadTasksRequest, "header"),
    "CompareRuns": _without_version(CompareRunsRequest),
    "PlanSize": _without_version(PlanSizeRequest),
    "GetLeaderboard": _without_version(GetLeaderboardRequest),
    "GetRatings": _without_version(GetRatingsRequest),
    "ListHistory": _without_version(ListHistoryRequest),
    "ListRuns": _without_version(ListRunsRequest),
}
