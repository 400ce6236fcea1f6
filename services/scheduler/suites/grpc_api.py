"""SuiteService: converts, calls a use case, converts."""

# ruff: noqa: N802 - names and parameters are those of the generated service

from dataclasses import dataclass

import grpc

from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1 import suite_service_pb2 as suite_pb2
from proctor.v1 import suite_service_pb2_grpc as suite_grpc
from proctor.values.names.user import LOCAL_USER
from proctor.wire.convert import Codec
from proctor.wire.values import SAMPLE, SCORING
from services.common.checked_fields import checked_text
from services.common.grpc.caller import caller_of
from services.common.grpc.server import RpcContext
from services.common.requests.request_fields import check_stores
from services.scheduler.suites.add_suite import AddSuite, CheckSuite
from services.scheduler.suites.delete_suite import DeleteSuite
from services.scheduler.suites.find_suites import FindSuites, WrittenSuite
from services.scheduler.suites.format.suite_document import SuiteDocument, SuiteFault
from services.scheduler.suites.ports import BrokenSuite
from services.scheduler.suites.show_sample import SamplePreview, SampleRequest, ShowSample
from services.scheduler.suites.suite import SuiteListing, SuiteOwner, TaskListing, summary_of

DOCUMENT = Codec(SuiteDocument, suite_pb2.SuiteDocument)
FAULT = Codec(SuiteFault, suite_pb2.SuiteFault)
SAMPLE_REQUEST = Codec(SampleRequest, suite_pb2.ShowSampleRequest, unpaired={"document"})
WRITTEN = Codec(WrittenSuite, suite_pb2.GetSuiteDocumentResponse, nested=[DOCUMENT])
SUITE = Codec(
    SuiteListing,
    scheduler_pb2.SuiteInfo,
    names={"name": "suite"},
    unpaired={"problem"},
    nested=[Codec(TaskListing, scheduler_pb2.TaskInfo, names={"name": "task"})],
)
BROKEN_SUITE = Codec(
    BrokenSuite,
    scheduler_pb2.SuiteInfo,
    names={"name": "suite"},
    unpaired={"description", "tasks", "judges"},
)
SERVICE_NAME = suite_pb2.DESCRIPTOR.services_by_name["SuiteService"].full_name


def shown_to_proto(shown: SamplePreview) -> suite_pb2.ShowSampleResponse:
    generation = shown.task.generation
    return suite_pb2.ShowSampleResponse(
        sample=SAMPLE.to_proto(shown.sample),
        scoring=SCORING.to_proto(shown.task.scoring),
        stop=generation.until if generation else (),
        max_tokens=generation.max_tokens if generation else 0,
        row_source=shown.row_source,
        row_source_revision=shown.row_source_revision,
        is_stand_in=shown.is_stand_in,
        repeats=shown.task.repeats,
    )


def suite_to_proto(suite: SuiteListing | BrokenSuite) -> scheduler_pb2.SuiteInfo:
    return BROKEN_SUITE.to_proto(suite) if isinstance(suite, BrokenSuite) else SUITE.to_proto(suite)


@dataclass(frozen=True, kw_only=True)
class GrpcSuiteApi(suite_grpc.SuiteServiceServicer):
    """Suites that users bring, and a look at what a model would be asked."""

    check: CheckSuite
    add: AddSuite
    delete: DeleteSuite
    documents: FindSuites
    show_sample: ShowSample

    def register(self, server: grpc.aio.Server) -> None:
        suite_grpc.add_SuiteServiceServicer_to_server(self, server)

    async def CheckSuite(
        self, request: suite_pb2.CheckSuiteRequest, context: RpcContext
    ) -> suite_pb2.CheckSuiteResponse:
        user = caller_of(context.invocation_metadata()).name
        reading = await self.check.check(DOCUMENT.from_proto(request.document), user)
        return suite_pb2.CheckSuiteResponse(
            faults=[FAULT.to_proto(fault) for fault in reading.faults],
            suite=suite_to_proto(summary_of(reading.suite)) if reading.suite else None,
        )

    async def AddSuite(
        self, request: suite_pb2.AddSuiteRequest, context: RpcContext
    ) -> suite_pb2.AddSuiteResponse:
        # Contents that are known already are not stored again, so that no policy refuses them.
        check_stores(caller_of(context.invocation_metadata()), request.project_id)
        document = DOCUMENT.from_proto(request.document)
        owner = SuiteOwner(request.user or LOCAL_USER, request.project_id)
        registered = await self.add.add(document, owner)
        suite = suite_to_proto(summary_of(registered.suite))
        return suite_pb2.AddSuiteResponse(suite=suite, is_known=registered.is_known)

    async def DeleteSuite(
        self, request: suite_pb2.DeleteSuiteRequest, context: RpcContext
    ) -> suite_pb2.DeleteSuiteResponse:
        caller = caller_of(context.invocation_metadata())
        await self.delete.delete(request.suite, request.version, caller)
        return suite_pb2.DeleteSuiteResponse()

    async def GetSuiteDocument(
        self,
        request: suite_pb2.GetSuiteDocumentRequest,
        context: RpcContext,  # noqa: ARG002  # as the generated service has it
    ) -> suite_pb2.GetSuiteDocumentResponse:
        return WRITTEN.to_proto(await self.documents.document(checked_text("suite", request.suite)))

    async def ShowSample(
        self, request: suite_pb2.ShowSampleRequest, context: RpcContext
    ) -> suite_pb2.ShowSampleResponse:
        caller, wanted = caller_of(context.invocation_metadata()), SAMPLE_REQUEST.from_proto(request)
        if not request.HasField("document"):
            return shown_to_proto(await self.show_sample.show(wanted, caller.name))
        # Templates and code of a document are executed only for who might add it.
        check_stores(caller, caller.key_project)
        document = DOCUMENT.from_proto(request.document)
        return shown_to_proto(await self.show_sample.show_written(document, wanted, caller.name))
