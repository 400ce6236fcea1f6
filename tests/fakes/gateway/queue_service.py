"""The queue, request counts, storage and told gates of a gateway: the queue it was given, counts by user."""

# ruff: noqa: N802, ARG002  # names and parameters are those of the contracts

from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import grpc

from proctor.v1 import comparison_pb2, model_pb2, run_pb2
from proctor.v1 import gate_service_pb2 as gate_pb2
from proctor.v1 import gate_service_pb2_grpc as gate_grpc
from proctor.v1 import queue_service_pb2 as queue_pb2
from proctor.v1 import queue_service_pb2_grpc as queue_grpc
from proctor.v1 import request_count_service_pb2 as request_count_pb2
from proctor.v1 import request_count_service_pb2_grpc as request_count_grpc
from proctor.v1 import storage_service_pb2 as storage_pb2
from proctor.v1 import storage_service_pb2_grpc as storage_grpc
from services.common.errors import ErrorKind, RemoteError
from services.common.grpc.caller import caller_of
from tests.fakes.refusals import refused

# While a test lasts.
_NO_NEW_MINUTE = timedelta(minutes=20)


def first_limits() -> queue_pb2.QueueLimits:
    limits = queue_pb2.QueueLimits(
        max_running_runs=3,
        max_pending_runs_per_user=10,
        max_requests_per_minute=100,
        max_stored_bytes_per_user=100_000_000_000,
        max_stored_files_per_user=10_000,
        max_stored_rows_per_user=200_000_000,
        max_stored_bytes_per_project=0,
    )
    limits.run_time_limit.FromSeconds(3 * 3600)
    limits.min_run_time.FromSeconds(60)
    limits.highest_priorities.add(user="*", highest=run_pb2.PRIORITY_NORMAL)
    return limits


def empty_queue() -> queue_pb2.GetQueueResponse:
    """With a worker that has nothing to do."""
    queue = queue_pb2.GetQueueResponse(limits=first_limits())
    queue.workers.add(
        worker_id="w1", pool="local", engine="vllm", state=model_pb2.WORKER_STATE_READY, concurrency=64
    )
    return queue


@dataclass
class FakeQueue(queue_grpc.QueueServiceServicer, request_count_grpc.RequestCountServiceServicer):
    """`requests` are refused once a user has made `max_requests`; `reads` are those that say so."""

    queue: queue_pb2.GetQueueResponse = field(default_factory=empty_queue)
    limits: queue_pb2.QueueLimits = field(default_factory=first_limits)
    max_requests: int = 1_000_000
    requests: Counter[str] = field(default_factory=Counter)
    reads: Counter[str] = field(default_factory=Counter)
    asked: list[queue_pb2.GetQueueRequest] = field(default_factory=list)
    metadata: list[tuple[str, str | bytes]] = field(default_factory=list)
    is_counting: bool = True
    changes: list[queue_pb2.SetLimitsRequest] = field(default_factory=list)

    def register(self, server: grpc.aio.Server) -> None:
        queue_grpc.add_QueueServiceServicer_to_server(self, server)
        request_count_grpc.add_RequestCountServiceServicer_to_server(self, server)

    async def GetQueue(self, request: queue_pb2.GetQueueRequest, context: Any) -> queue_pb2.GetQueueResponse:
        self.asked.append(request)
        self.metadata.extend(context.invocation_metadata())
        return self.queue

    async def GetLimits(
        self, request: queue_pb2.GetLimitsRequest, context: Any
    ) -> queue_pb2.GetLimitsResponse:
        return queue_pb2.GetLimitsResponse(limits=self.limits)

    async def SetLimits(
        self, request: queue_pb2.SetLimitsRequest, context: Any
    ) -> queue_pb2.SetLimitsResponse:
        self.changes.append(request)
        first = first_limits()
        for known, _ in first.ListFields():
            if known.name in request.reset:
                self.limits.ClearField(known.name)  # type: ignore[arg-type]  # a name of its own
            else:
                first.ClearField(known.name)  # type: ignore[arg-type]  # a name of its own
        self.limits.MergeFrom(first)
        # To merge is to replace numbers, but to add up lists and messages.
        for known, _ in request.limits.ListFields():
            self.limits.ClearField(known.name)  # type: ignore[arg-type]  # a name of its own
        self.limits.MergeFrom(request.limits)
        return queue_pb2.SetLimitsResponse(limits=self.limits)

    async def CountRequest(
        self, request: request_count_pb2.CountRequestRequest, context: Any
    ) -> request_count_pb2.CountRequestResponse:
        if not self.is_counting:
            raise refused(ErrorKind.UNAVAILABLE, "DEPENDENCY_UNAVAILABLE", "Postgres does not answer.")
        self.requests[request.user] += 1
        self.reads[request.user] += request.is_read
        left = self.max_requests - self.requests[request.user]
        if left < 0:
            facts = {"user": request.user, "limit": str(self.max_requests), "retry_after_seconds": "12"}
            sentence = f"User {request.user} has made the {self.max_requests} requests of this minute."
            raise refused(ErrorKind.EXHAUSTED, "TOO_MANY_REQUESTS", sentence, **facts)
        response = request_count_pb2.CountRequestResponse(remaining=left, limit=self.max_requests)
        response.resets_in.FromTimedelta(_NO_NEW_MINUTE)
        return response


@dataclass
class FakeStorage(storage_grpc.StorageServiceServicer):
    """Each user stores the same."""

    asked: list[str] = field(default_factory=list)

    def register(self, server: grpc.aio.Server) -> None:
        storage_grpc.add_StorageServiceServicer_to_server(self, server)

    async def GetStorage(
        self, request: storage_pb2.GetStorageRequest, context: Any
    ) -> storage_pb2.GetStorageResponse:
        self.asked.append(request.user)
        used = storage_pb2.StorageUse(bytes=1_500_000, files=3, rows=1_200)
        return storage_pb2.GetStorageResponse(
            user=request.user or caller_of(context.invocation_metadata()).name,
            used=used,
            limit=storage_pb2.StorageUse(bytes=100_000_000_000, files=10_000, rows=200_000_000),
            shares=[storage_pb2.StorageShare(kind="datasets", used=used)],
        )


@dataclass
class FakeGates(gate_grpc.GateServiceServicer):
    """`refusal` is raised by each call."""

    told: list[comparison_pb2.Gate] = field(default_factory=list)
    refusal: RemoteError | None = None

    async def TellGate(self, request: gate_pb2.TellGateRequest, context: Any) -> gate_pb2.TellGateResponse:
        if self.refusal:
            raise self.refusal
        self.told.append(request.gate)
        return gate_pb2.TellGateResponse()
