"""Reports of workers about budgets over NATS, each with the proof that its rollout was dispatched to them."""

from typing import NoReturn
from uuid import UUID

from google.protobuf.message import DecodeError
from nats.aio.client import Client

from proctor.v1 import work_messages_pb2
from proctor.values import messaging
from proctor.values.run import RunId
from proctor.wire.dispatch_proofs import is_dispatched
from proctor.wire.values import BUDGET_USE, PRICE
from services.common.errors import DomainError
from services.common.nats.answers import WorkerRequests
from services.common.structured_logs import get_logger
from services.scheduler.rollouts.budgets.budget_report import BudgetReport, EarlierUse
from services.scheduler.rollouts.budgets.errors import BudgetUseRefused
from services.scheduler.rollouts.budgets.record_budget_use import RecordBudgetUse

log = get_logger()

_QUEUE = "scheduler"


class NatsBudgets:
    """Accepts every proof where the scheduler has no key, as in tests of one service."""

    def __init__(self, connection: Client, recording: RecordBudgetUse, shard_key: str) -> None:
        self._requests = WorkerRequests(connection, messaging.ALL_BUDGETS, _QUEUE)
        self._recording = recording
        self._shard_key = shard_key

    async def answer(self) -> NoReturn:
        await self._requests.answer(self._respond)

    async def _respond(self, data: bytes) -> bytes:
        try:
            sent = work_messages_pb2.ReportBudgetUseRequest.FromString(data)
            response = _response(await self._recording.record(self._report(sent)))
        except (DecodeError, ValueError):
            response = _refusal("The request cannot be read.", is_refused=True)
        except DomainError as error:
            response = _refusal(str(error), is_refused=isinstance(error, BudgetUseRefused))
        except Exception:  # an edge: one request that fails ends no other
            log.exception("the use of a budget cannot be recorded")
            response = _refusal("The scheduler failed; its log says why.", is_refused=False)
        return response.SerializeToString()

    def _report(self, sent: work_messages_pb2.ReportBudgetUseRequest) -> BudgetReport:
        """Raises `BudgetUseRefused` where the worker was not sent the rollout, ValueError for no run's id."""
        if not is_dispatched(sent, self._shard_key):
            raise BudgetUseRefused(problem="the worker was not sent this rollout.")
        run_id = RunId(str(UUID(sent.run_id)))
        used = BUDGET_USE.from_proto(sent.used)
        return BudgetReport(run_id, sent.epoch, sent.sample, sent.proof.rollout, sent.execution, used)


def _response(earlier: EarlierUse) -> work_messages_pb2.ReportBudgetUseResponse:
    return work_messages_pb2.ReportBudgetUseResponse(
        earlier=BUDGET_USE.to_proto(earlier.used),
        earlier_executions=earlier.executions,
        price=PRICE.to_proto(earlier.price) if earlier.price else None,
    )


def _refusal(problem: str, *, is_refused: bool) -> work_messages_pb2.ReportBudgetUseResponse:
    return work_messages_pb2.ReportBudgetUseResponse(problem=problem, is_refused=is_refused)
