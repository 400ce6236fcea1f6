"""Rate reports from core NATS, and quotas in the bucket QUOTAS."""

import re
from collections.abc import Mapping

from google.protobuf.message import DecodeError
from nats.aio.client import Client
from nats.aio.msg import Msg

from proctor.v1 import work_messages_pb2
from proctor.values import messaging
from proctor.wire.convert import Codec
from proctor.wire.subjects import RATES
from services.common.bounded_messages import read_message
from services.common.clock import Clock
from services.common.nats.bucket import Bucket
from services.common.structured_logs import get_logger
from services.scheduler.rate_limits.assign_quotas import QuotaKey
from services.scheduler.rate_limits.rate_meter import (
    RateLimitTracker,
    RateQuota,
    RateReport,
    RequestRetryBudget,
)

log = get_logger()

REPORT = Codec(RateReport, work_messages_pb2.RateReport)
QUOTA = Codec(RateQuota, work_messages_pb2.RateQuota, unpaired={"rate_limit_key"})

# A key becomes a part of a key in the bucket.
_KEY = re.compile(r"[\w-]{1,64}", re.ASCII)
# Far above the name of a pool and of a host. A quota has the ids of all workers of its pool, up to a MiB.
_MAX_WORKER_ID_CHARACTERS = 200


class NatsRateReports:
    """Receives rate reports. Lost ones do no harm; the client renews the subscription after an outage.

    The pool is that of the subject, since NATS lets a worker send to the subjects of its own pool only. A
    message that JetStream delivers here for a worker has the subject under which it was stored.
    """

    def __init__(
        self, connection: Client, tracker: RateLimitTracker, budget: RequestRetryBudget, clock: Clock
    ) -> None:
        self._connection = connection
        self._tracker = tracker
        self._budget = budget
        self._clock = clock

    async def start(self) -> None:
        await self._connection.subscribe(RATES.subject, cb=self._record)

    async def _record(self, message: Msg) -> None:
        try:
            report = REPORT.from_proto(read_message(RATES.kind, message.data, RATES.max_bytes))
        except DecodeError:
            log.warning("unreadable rate report", subject=message.subject)
            return
        pool = messaging.pool_of_rates(message.subject)
        if pool not in self._tracker.groups or not _is_sound(report, pool, message.subject):
            log.warning("rate report dropped", subject=message.subject, rate_limit_key=report.rate_limit_key)
            return
        self._tracker.record(pool, report, self._clock.monotonic())
        self._budget.record(pool, report)


def _is_sound(report: RateReport, pool: str, subject: str) -> bool:
    is_key = _KEY.fullmatch(report.rate_limit_key) is not None
    is_of_subject = subject == messaging.rate_subject(pool, report.rate_limit_key)
    return is_key and is_of_subject and len(report.worker_id) <= _MAX_WORKER_ID_CHARACTERS


class NatsQuotas:
    """Stores quotas where workers watch them and a new leader finds them."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket

    async def put(self, key: QuotaKey, quota: RateQuota) -> None:
        message = QUOTA.to_proto(quota)
        message.rate_limit_key = key.rate_limit_key
        await self._bucket.put(messaging.quota_key(*key), message.SerializeToString())

    async def delete(self, key: QuotaKey) -> None:
        await self._bucket.delete(messaging.quota_key(*key))

    async def stored(self) -> Mapping[QuotaKey, RateQuota]:
        found: dict[QuotaKey, RateQuota] = {}
        for name, value in (await self._bucket.entries(messaging.quotas_of_pool("*"))).items():
            key = QuotaKey(*messaging.split_quota_key(name))
            try:
                found[key] = QUOTA.from_proto(work_messages_pb2.RateQuota.FromString(value))
            except DecodeError:
                log.warning("unreadable quota", pool=key.pool, rate_limit_key=key.rate_limit_key)
        return found
