"""Suites of users, and samples as a model would be asked."""

from typing import TYPE_CHECKING

from proctor.client.calls import GatewayCalls
from proctor.v1 import suite_service_pb2 as suite_pb2
from proctor.v1 import suite_service_pb2_grpc as suite_grpc

if TYPE_CHECKING:
    from proctor.v1.suite_service_pb2_grpc import SuiteServiceAsyncStub


class SuiteClient:
    """`client.suites`."""

    def __init__(self, calls: GatewayCalls, user: str) -> None:
        self._calls = calls
        self._user = user
        self._stub: SuiteServiceAsyncStub = suite_grpc.SuiteServiceStub(calls.channel)

    async def check(self, document: suite_pb2.SuiteDocument) -> suite_pb2.CheckSuiteResponse:
        return await self._calls.call(self._stub.CheckSuite, suite_pb2.CheckSuiteRequest(document=document))

    async def add(self, document: suite_pb2.SuiteDocument) -> suite_pb2.AddSuiteResponse:
        """The same content added twice is one version."""
        request = suite_pb2.AddSuiteRequest(document=document, user=self._user)
        return await self._calls.call(self._stub.AddSuite, request)

    async def delete(self, suite: str, version: int) -> None:
        request = suite_pb2.DeleteSuiteRequest(suite=suite, version=version)
        await self._calls.call_once(self._stub.DeleteSuite, request)

    async def show_sample(self, request: suite_pb2.ShowSampleRequest) -> suite_pb2.ShowSampleResponse:
        return await self._calls.call(self._stub.ShowSample, request)
