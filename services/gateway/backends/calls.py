"""Scheduler and results as the APIs call them: calls have a time limit and fail with domain errors."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Annotated

import grpc
from fastapi import Depends, Request

from proctor.v1 import access_service_pb2_grpc as access_grpc
from proctor.v1 import gate_service_pb2_grpc as gate_grpc
from proctor.v1 import request_count_service_pb2_grpc as request_count_grpc
from proctor.v1 import summary_pb2
from proctor.v1.results_service_pb2 import ListOutcomesRequest, ListOutcomesResponse
from proctor.values.names.user import Caller
from proctor.wire.stubs import (
    LONG_CALL_FACTOR,
    CallFailed,
    Metadata,
    ResultsStubs,
    SchedulerStubs,
    StubChannel,
)
from services.common.errors import DependencyUnavailable, DomainError, ErrorKind, RemoteError
from services.common.grpc.caller import caller_metadata
from services.common.grpc.errors import remote_error

SCHEDULER = "scheduler"
RESULTS = "results"


def backend_error(error: grpc.aio.AioRpcError, backend: str) -> DomainError:
    """The error that the backend reported, or `DependencyUnavailable` when it did not respond."""
    reported = remote_error(error)
    is_away = error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
    return DependencyUnavailable(dependency=backend) if is_away and not reported.facts else reported


_ANONYMOUS = Caller()
# Declared projects; None: all.
Sight = tuple[int, ...] | None
# The caller of the request that is being served.
_caller: ContextVar[Caller] = ContextVar("caller", default=_ANONYMOUS)


@contextmanager
def calling_for(caller: Caller) -> Iterator[None]:
    """Calls of backends inside are made for this caller."""
    token = _caller.set(caller)
    try:
        yield
    finally:
        _caller.reset(token)


def present_sight() -> Sight:
    """Of the caller whose request is served: what was read for it may be shown to others of its sight."""
    return _caller.get().sight


class BackendChannel(StubChannel):
    """Calls of a backend, in the name of the caller whose request is served."""

    def __init__(self, channel: grpc.aio.Channel, backend: str, timeout_seconds: float) -> None:
        super().__init__(channel, timeout_seconds, chunk_seconds=timeout_seconds)
        self._backend = backend

    def metadata(self) -> Metadata:
        return caller_metadata(_caller.get())

    def failure(self, error: CallFailed) -> DomainError:
        if isinstance(error, TimeoutError):
            return DependencyUnavailable(dependency=self._backend)
        return backend_error(error, self._backend)


class Scheduler(SchedulerStubs):
    """The scheduler's services, also those that are not public."""

    def __init__(self, channel: grpc.aio.Channel, *, timeout_seconds: float) -> None:
        calls = BackendChannel(channel, SCHEDULER, timeout_seconds).as_channel()
        super().__init__(calls)
        self.request_counts: request_count_grpc.RequestCountServiceAsyncStub = (
            request_count_grpc.RequestCountServiceStub(calls)
        )
        self.gates: gate_grpc.GateServiceAsyncStub = gate_grpc.GateServiceStub(calls)
        self.access: access_grpc.AccessServiceAsyncStub = access_grpc.AccessServiceStub(calls)


class Results(ResultsStubs):
    """The services of results."""

    def __init__(self, channel: grpc.aio.Channel, *, timeout_seconds: float) -> None:
        super().__init__(BackendChannel(channel, RESULTS, timeout_seconds).as_channel())
        self.long_call_seconds = timeout_seconds * LONG_CALL_FACTOR

    async def summary(self, run_id: str) -> summary_pb2.RunSummary:
        """The summary of a run, partial while it runs; empty before it is planned."""
        try:
            return await super().summary(run_id)
        except RemoteError as error:
            if error.kind is ErrorKind.NOT_FOUND:
                return summary_pb2.RunSummary(run_id=run_id)
            raise

    async def recorded_outcomes(self, request: ListOutcomesRequest) -> ListOutcomesResponse:
        """A page of outcomes; empty before the run is planned."""
        try:
            return await self.outcomes.ListOutcomes(request)
        except RemoteError as error:
            if error.kind is ErrorKind.NOT_FOUND:
                return ListOutcomesResponse()
            raise


async def _scheduler(request: Request) -> Scheduler:
    scheduler: Scheduler = request.app.state.scheduler
    return scheduler


async def _results(request: Request) -> Results:
    results: Results = request.app.state.results
    return results


# Dependencies of handlers: the backends.
SchedulerCalls = Annotated[Scheduler, Depends(_scheduler)]
ResultsCalls = Annotated[Results, Depends(_results)]


@dataclass(frozen=True, slots=True)
class Backends:
    scheduler: SchedulerCalls
    results: ResultsCalls


BackendCalls = Annotated[Backends, Depends()]
