"""Files of tasks from the scheduler, artifacts and used budgets to it: a worker reaches no store."""

import asyncio
from dataclasses import dataclass, replace
from typing import TypeVar

from google.protobuf.message import DecodeError
from nats.aio.client import Client
from nats.errors import NoRespondersError

from proctor.v1 import work_messages_pb2
from proctor.values import messaging
from proctor.values.rollout import BudgetUse, EarlierUse
from proctor.wire.values import BUDGET_USE, EARLIER_USE
from services.common.nats.connection import TRANSIENT_NATS
from services.common.structured_logs import get_logger
from services.worker.execution.proto import proof_to_proto
from services.worker.execution.shard import Shard
from services.worker.rollouts.errors import ArtifactNotStored, BudgetNotRecorded, FilesNotFetched

log = get_logger()

_Request = (
    work_messages_pb2.ReadBundleRequest
    | work_messages_pb2.PutArtifactRequest
    | work_messages_pb2.ReportBudgetUseRequest
)
R = TypeVar(
    "R",
    work_messages_pb2.ReadBundleResponse,
    work_messages_pb2.PutArtifactResponse,
    work_messages_pb2.ReportBudgetUseResponse,
)
_BACKOFF_SECONDS = 2.0
# While no scheduler is there, no other rollout could begin in the slot of one that waits.
_ABSENCE_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class _RetryPolicy:
    """Requests are repeated for `patience_seconds`; longer where no scheduler is there to answer them."""

    timeout_seconds: float
    patience_seconds: float
    absence_seconds: float = _ABSENCE_SECONDS


# A rollout that gives up loses all that it has done: minutes of waiting cost less.
_LONG_RETRY = _RetryPolicy(timeout_seconds=20.0, patience_seconds=900.0)
# Artifacts are worth less than a slot of a worker.
_SHORT_RETRY = _RetryPolicy(timeout_seconds=10.0, patience_seconds=20.0)
# Nothing depends on it: the execution is over, or it rests.
_LAST_REPORT = _RetryPolicy(timeout_seconds=3.0, patience_seconds=0.0, absence_seconds=0.0)


@dataclass(frozen=True, slots=True)
class _Asking:
    connection: Client
    subject: str
    retry: _RetryPolicy

    async def answer(self, request: _Request, response_type: type[R]) -> R:
        """The first response without a problem, or with one that stays; the problem once patience ends."""
        began = asyncio.get_running_loop().time()
        while True:
            patience = self.retry.patience_seconds
            try:
                reply = await self.connection.request(
                    self.subject, request.SerializeToString(), timeout=self.retry.timeout_seconds
                )
                response = response_type.FromString(reply.data)
            except DecodeError:
                return response_type(problem="the scheduler's answer cannot be read. Update this worker.")
            except NoRespondersError:
                problem, patience = "no scheduler is there.", self.retry.absence_seconds
            except TRANSIENT_NATS as error:
                problem = f"the scheduler does not answer ({type(error).__name__})."
            else:
                if not response.problem or _stays(response):
                    return response
                problem = response.problem
            if asyncio.get_running_loop().time() - began >= patience:
                return response_type(problem=problem)
            log.info("the scheduler is asked again", subject=self.subject, problem=problem)
            await asyncio.sleep(_BACKOFF_SECONDS)


def _stays(
    response: work_messages_pb2.ReadBundleResponse
    | work_messages_pb2.PutArtifactResponse
    | work_messages_pb2.ReportBudgetUseResponse,
) -> bool:
    """Whether retrying does not help."""
    return (
        response.is_missing
        if isinstance(response, work_messages_pb2.ReadBundleResponse)
        else response.is_refused
    )


class NatsExecution:
    """One execution of a rollout. What it makes and uses is sent with the proof of its shard."""

    def __init__(self, connection: Client, pool: str, shard: Shard, sample: int, execution: str) -> None:
        self._artifacts = _Asking(connection, messaging.artifact_subject(pool), _SHORT_RETRY)
        self._budgets = _Asking(connection, messaging.budget_subject(pool), _LONG_RETRY)
        self._last_report = replace(self._budgets, retry=_LAST_REPORT)
        self._shard = shard
        self._sample = sample
        self.execution = execution

    async def put(self, name: str, part: int, content: bytes) -> None:
        request = work_messages_pb2.PutArtifactRequest(
            run_id=self._shard.run_id,
            epoch=self._shard.epoch,
            proof=proof_to_proto(self._shard.dispatch_proof),
            sample=self._sample,
            execution=self.execution,
            name=name,
            part=part,
            content=content,
        )
        response = await self._artifacts.answer(request, work_messages_pb2.PutArtifactResponse)
        if response.problem:
            raise ArtifactNotStored(response.problem, is_final=response.is_refused)

    async def report(self, used: BudgetUse) -> EarlierUse:
        request = self._report_of(used)
        response = await self._budgets.answer(request, work_messages_pb2.ReportBudgetUseResponse)
        if response.problem:
            raise BudgetNotRecorded(response.problem)
        return EARLIER_USE.from_proto(response)

    async def leave(self, used: BudgetUse, *, is_resting: bool = False) -> None:
        request = self._report_of(used)
        request.is_left, request.is_resting = True, is_resting
        response = await self._last_report.answer(request, work_messages_pb2.ReportBudgetUseResponse)
        if response.problem:
            log.info("end of an execution not recorded", run_id=self._shard.run_id, problem=response.problem)

    async def rest(self, used: BudgetUse) -> None:
        request = self._report_of(used)
        request.is_resting = True
        response = await self._last_report.answer(request, work_messages_pb2.ReportBudgetUseResponse)
        if response.problem:
            log.info("rest of a rollout not recorded", run_id=self._shard.run_id, problem=response.problem)

    def _report_of(self, used: BudgetUse) -> work_messages_pb2.ReportBudgetUseRequest:
        return work_messages_pb2.ReportBudgetUseRequest(
            run_id=self._shard.run_id,
            epoch=self._shard.epoch,
            proof=proof_to_proto(self._shard.dispatch_proof),
            sample=self._sample,
            execution=self.execution,
            used=BUDGET_USE.to_proto(used),
        )


class NatsBundles:
    def __init__(self, connection: Client, pool: str) -> None:
        self._asking = _Asking(connection, messaging.bundle_subject(pool), _LONG_RETRY)

    async def part(self, digest: str, first_byte: int) -> bytes:
        wanted = work_messages_pb2.ReadBundleRequest(digest=digest, first_byte=first_byte)
        response = await self._asking.answer(wanted, work_messages_pb2.ReadBundleResponse)
        if response.problem:
            raise FilesNotFetched(problem=response.problem)
        return response.content
