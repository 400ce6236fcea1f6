"""Rate reports from core NATS, and quotas in the bucket QUOTAS."""

from collections.abc import Mapping

from google.protobuf.message import DecodeError
from nats.aio.client import Client
from nats.aio.msg import Msg

from proctor.v1 import work_messages_pb2
from proctor.values.messaging import ALL_RATES
from proctor.wire.convert import Codec
from services.common.bounded_messages import read_message
from services.common.clock import Clock
from services.common.nats.bucket import Bucket
from services.common.structured_logs import get_logger
from services.scheduler.rate_limits.rate_meter import (
    RateLimitTracker,
    RateQuota,
    RateReport,
    RequestRetryBudget,
)

log = get_logger()

REPORT = Codec(RateReport, work_messages_pb2.RateReport)
QUOTA = Codec(RateQuota, work_messages_pb2.RateQuota, unpaired={"rate_limit_key"})


class NatsRateReports:
    """Receives rate reports. Lost ones do no harm; the client renews the subscription after an outage."""

    def __init__(
        self, connection: Client, tracker: RateLimitTracker, budget: RequestRetryBudget, clock: Clock
    ) -> None:
        self._connection = connection
        self._tracker = tracker
        self._budget = budget
        self._clock = clock

    async def start(self) -> None:
        await self._connection.subscribe(ALL_RATES, cb=self._record)

    async def _record(self, message: Msg) -> None:
        try:
            report = REPORT.from_proto(read_message(work_messages_pb2.RateReport, message.data))
        except DecodeError:
            log.warning("unreadable rate report", subject=message.subject)
            return
        self._tracker.record(report, self._clock.monotonic())
        self._budget.record(report)


class NatsQuotas:
    """Stores quotas where workers watch them and a new leader finds them."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket

    async def put(self, rate_limit_key: str, quota: RateQuota) -> None:
        message = QUOTA.to_proto(quota)
        message.rate_limit_key = rate_limit_key
        await self._bucket.put(rate_limit_key, message.SerializeToString())

    async def delete(self, rate_limit_key: str) -> None:
        await self._bucket.delete(rate_limit_key)

    async def stored(self) -> Mapping[str, RateQuota]:
        found: dict[str, RateQuota] = {}
        for key, value in (await self._bucket.entries()).items():
            try:
                found[key] = QUOTA.from_proto(work_messages_pb2.RateQuota.FromString(value))
            except DecodeError:
                log.warning("unreadable quota", rate_limit_key=key)
        return found
