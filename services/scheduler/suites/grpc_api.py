"""SuiteService: converts, calls a use case, converts."""

# ruff: noqa: N802, ARG002 - names and parameters are those of the generated service

from dataclasses import dataclass

import grpc

from proctor.v1 import suite_service_pb2 as messages
from proctor.v1 import suite_service_pb2_grpc
from services.scheduler.requests import DEFAULT_USER
from services.scheduler.suites.add_suite import AddSuite, CheckSuite, DeleteSuite
from services.scheduler.suites.proto import (
    document_from_proto,
    problem_to_proto,
    shown_to_proto,
    suite_to_proto,
    wanted_from_proto,
)
from services.scheduler.suites.show_sample import ShowSample
from services.scheduler.suites.suite import summary_of

SERVICE_NAME = messages.DESCRIPTOR.services_by_name["SuiteService"].full_name

Context = grpc.aio.ServicerContext[object, object]


@dataclass(frozen=True)
class SuiteUseCases:
    check: CheckSuite
    add: AddSuite
    delete: DeleteSuite
    show: ShowSample


class GrpcSuiteApi(suite_service_pb2_grpc.SuiteServiceServicer):
    """Suites that users bring, and a look at what a model would be asked."""

    def __init__(self, use_cases: SuiteUseCases) -> None:
        self._use = use_cases

    def register(self, server: grpc.aio.Server) -> None:
        suite_service_pb2_grpc.add_SuiteServiceServicer_to_server(self, server)

    async def CheckSuite(
        self, request: messages.CheckSuiteRequest, context: Context
    ) -> messages.CheckSuiteResponse:
        reading = await self._use.check.check(document_from_proto(request.document))
        return messages.CheckSuiteResponse(
            problems=[problem_to_proto(problem) for problem in reading.problems],
            suite=suite_to_proto(summary_of(reading.suite)) if reading.suite else None,
        )

    async def AddSuite(
        self, request: messages.AddSuiteRequest, context: Context
    ) -> messages.AddSuiteResponse:
        document = document_from_proto(request.document)
        registered = await self._use.add.add(document, request.user or DEFAULT_USER)
        suite = suite_to_proto(summary_of(registered.suite))
        return messages.AddSuiteResponse(suite=suite, is_known=registered.is_known)

    async def DeleteSuite(
        self, request: messages.DeleteSuiteRequest, context: Context
    ) -> messages.DeleteSuiteResponse:
        await self._use.delete.delete(request.suite, request.version)
        return messages.DeleteSuiteResponse()

    async def ShowSample(
        self, request: messages.ShowSampleRequest, context: Context
    ) -> messages.ShowSampleResponse:
        return shown_to_proto(await self._use.show.show(wanted_from_proto(request)))
