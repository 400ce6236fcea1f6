"""Reports of workers about budgets over NATS, each with the proof that its rollout was dispatched to them."""

from typing import NoReturn

from google.protobuf.message import DecodeError
from nats.aio.client import Client

from proctor.v1 import work_messages_pb2
from proctor.wire.proofs import dispatch_of, run_of
from proctor.wire.subjects import BUDGETS
from proctor.wire.values import BUDGET_USE, EARLIER_USE
from services.common.bounded_messages import read_message
from services.common.nats.worker_requests import WorkerRequests
from services.scheduler.rollouts.budgets.budget_report import BudgetReport
from services.scheduler.rollouts.budgets.record_budget_use import BudgetUseRefused, RecordBudgetUse


class NatsBudgets:
    def __init__(self, connection: Client, recording: RecordBudgetUse, dispatch_proof_key: str) -> None:
        self._requests = WorkerRequests(connection, BUDGETS.subject)
        self._recording = recording
        self._dispatch_proof_key = dispatch_proof_key

    async def answer(self) -> NoReturn:
        await self._requests.answer(self)

    async def respond(self, data: bytes) -> work_messages_pb2.ReportBudgetUseResponse:
        sent = read_message(BUDGETS.kind, data, BUDGETS.max_bytes)
        return EARLIER_USE.to_proto(await self._recording.record(self._report(sent)))

    def refuse(self, problem: str, error: Exception) -> work_messages_pb2.ReportBudgetUseResponse:
        is_refused = isinstance(error, BudgetUseRefused | DecodeError)
        return work_messages_pb2.ReportBudgetUseResponse(problem=problem, is_refused=is_refused)

    def _report(self, sent: work_messages_pb2.ReportBudgetUseRequest) -> BudgetReport:
        """Raises `BudgetUseRefused` for a rollout that was not sent, DecodeError for no run's id."""
        dispatch = dispatch_of(sent, self._dispatch_proof_key)
        if dispatch is None:
            raise BudgetUseRefused(problem="the worker was not sent this rollout.")
        return BudgetReport(
            run_id=run_of(sent),
            epoch=sent.epoch,
            shard=dispatch.shard,
            sample=sent.sample,
            rollout=dispatch.rollout,
            execution=sent.execution,
            used=BUDGET_USE.from_proto(sent.used),
            is_left=sent.is_left,
            is_resting=sent.is_resting,
        )
