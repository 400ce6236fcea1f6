"""Reports of workers on paces, from core NATS onto the board. Lost ones do no harm."""

from datetime import UTC

from google.protobuf.message import DecodeError
from nats.aio.client import Client
from nats.aio.msg import Msg

from proctor.v1 import work_messages_pb2
from services.common.clock import Clock
from services.common.structured_logs import get_logger
from services.common.subjects import ALL_RATES
from services.scheduler.paces.pace import RateReport
from services.scheduler.paces.pace_board import PaceBoard
from services.scheduler.paces.retry_budget import RetryBudget

log = get_logger()


class NatsPaceFeed:
    """The client renews the subscription by itself after an outage."""

    def __init__(self, connection: Client, board: PaceBoard, budget: RetryBudget, clock: Clock) -> None:
        self._connection = connection
        self._board = board
        self._budget = budget
        self._clock = clock

    async def start(self) -> None:
        await self._connection.subscribe(ALL_RATES, cb=self._take_report)

    async def _take_report(self, message: Msg) -> None:
        try:
            report = report_from_proto(work_messages_pb2.RateReport.FromString(message.data))
        except DecodeError:
            log.warning("unreadable pace report", subject=message.subject)
            return
        self._board.record(report, self._clock.monotonic())
        self._budget.record(report)


def report_from_proto(report: work_messages_pb2.RateReport) -> RateReport:
    has = report.HasField
    return RateReport(
        worker_id=report.worker_id,
        pace=report.rate_limit_key,
        sent=report.sent,
        refused=report.rate_limited,
        waiting=report.waiting,
        resume_at=report.resume_at.ToDatetime(UTC) if has("resume_at") else None,
        allowed_requests=report.allowed_requests_per_second if has("allowed_requests_per_second") else None,
        allowed_tokens=report.allowed_tokens_per_second if has("allowed_tokens_per_second") else None,
        retries=dict(report.retries),
    )
