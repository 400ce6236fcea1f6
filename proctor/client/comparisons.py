"""What runs prove about each other."""

import uuid
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from proctor.client.gateway_calls import GatewayCalls
from proctor.client_errors import Refused
from proctor.v1 import comparison_pb2
from proctor.v1 import comparison_service_pb2 as comparing_pb2
from proctor.v1 import comparison_service_pb2_grpc as comparing_grpc

if TYPE_CHECKING:
    from proctor.v1.comparison_service_pb2_grpc import ComparisonServiceAsyncStub


@dataclass(frozen=True, slots=True)
class Compared:
    """Ids of runs, or models "provider/name" by their latest complete run of the suite."""

    names: Sequence[str]
    suite: str = ""
    metrics: Sequence[str] = ()
    tasks: Sequence[str] = ()
    is_forced: bool = False

    def request(self) -> comparing_pb2.CompareRunsRequest:
        """Raises Refused for names of both kinds."""
        are_runs = {_is_run(name) for name in self.names}
        if len(are_runs) > 1:
            raise Refused("Compare either runs by their ids or models, not both.", "INVALID_PARAMETER")
        if are_runs == {False} and not self.suite:
            raise Refused("Models are compared on a suite: name it (--suite glue).", "INVALID_PARAMETER")
        return comparing_pb2.CompareRunsRequest(
            run_ids=self.names if are_runs == {True} else (),
            models=self.names if are_runs == {False} else (),
            suite=self.suite,
            metrics=self.metrics,
            tasks=self.tasks,
            is_forced=self.is_forced,
        )


class ComparisonClient:
    """`client.comparisons`."""

    def __init__(self, calls: GatewayCalls) -> None:
        self._calls = calls
        self._stub: ComparisonServiceAsyncStub = comparing_grpc.ComparisonServiceStub(calls.channel)

    async def compare(self, compared: Compared) -> comparison_pb2.Comparison:
        response = await self._calls.call(self._stub.CompareRuns, compared.request())
        return response.comparison

    async def list_flips(self, request: comparing_pb2.ListFlipsRequest) -> comparing_pb2.ListFlipsResponse:
        """One page."""
        return await self._calls.call(self._stub.ListFlips, request)

    async def flips(self, request: comparing_pb2.ListFlipsRequest) -> AsyncGenerator[comparison_pb2.Flip]:
        """Every sample on which the two differ, page after page from the one asked for."""
        asked = comparing_pb2.ListFlipsRequest()
        asked.CopyFrom(request)
        while True:
            page = await self.list_flips(asked)
            for flip in page.flips:
                yield flip
            if not page.next_page_token:
                return
            asked.page_token = page.next_page_token


def _is_run(name: str) -> bool:
    try:
        uuid.UUID(name)
    except ValueError:
        return False
    return True
