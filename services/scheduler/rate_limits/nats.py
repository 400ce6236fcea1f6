"""Rate reports from core NATS, and quotas in the bucket QUOTAS."""

from collections.abc import Mapping
from datetime import UTC

from google.protobuf.message import DecodeError
from nats.aio.client import Client
from nats.aio.msg import Msg

from proctor.v1 import work_messages_pb2
from services.common.clock import Clock
from services.common.jetstream import Bucket
from services.common.structured_logs import get_logger
from services.common.subjects import ALL_RATES
from services.scheduler.rate_limits.rate_meter import RateLimitTracker
from services.scheduler.rate_limits.rate_report import RateQuota, RateReport
from services.scheduler.rate_limits.retry_budget import RetryBudget

log = get_logger()


class NatsRateReports:
    """The client renews the subscription by itself after an outage."""

    def __init__(
        self, connection: Client, tracker: RateLimitTracker, budget: RetryBudget, clock: Clock
    ) -> None:
        self._connection = connection
        self._tracker = tracker
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
        self._tracker.record(report, self._clock.monotonic())
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


class NatsQuotas:
    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket

    async def put(self, pace: str, grant: RateQuota) -> None:
        await self._bucket.put(pace, quota_to_proto(pace, grant).SerializeToString())

    async def drop(self, pace: str) -> None:
        await self._bucket.delete(pace)

    async def stored(self) -> Mapping[str, RateQuota]:
        found: dict[str, RateQuota] = {}
        for pace, value in (await self._bucket.entries()).items():
            try:
                found[pace] = quota_from_proto(work_messages_pb2.RateQuota.FromString(value))
            except DecodeError:
                log.warning("unreadable grant", pace=pace)
        return found


def quota_to_proto(pace: str, grant: RateQuota) -> work_messages_pb2.RateQuota:
    message = work_messages_pb2.RateQuota(
        rate_limit_key=pace,
        requests_per_second=grant.requests_per_second,
        tokens_per_second=grant.tokens_per_second,
        shares=grant.shares,
    )
    if grant.resume_at is not None:
        message.resume_at.FromDatetime(grant.resume_at)
    return message


def quota_from_proto(grant: work_messages_pb2.RateQuota) -> RateQuota:
    return RateQuota(
        requests_per_second=grant.requests_per_second if grant.HasField("requests_per_second") else None,
        tokens_per_second=grant.tokens_per_second if grant.HasField("tokens_per_second") else None,
        shares=dict(grant.shares),
        resume_at=grant.resume_at.ToDatetime(UTC) if grant.HasField("resume_at") else None,
    )
