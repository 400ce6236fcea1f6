"""Reports this worker's requests to the leader, and follows the quotas that the leader assigns."""

from datetime import UTC

from google.protobuf.message import DecodeError
from nats.aio.client import Client

from proctor.v1 import work_messages_pb2
from proctor.values import messaging
from services.common.clock import Clock
from services.common.nats.bucket import Bucket, BucketEntry
from services.common.nats.connection import TRANSIENT_NATS
from services.common.structured_logs import get_logger
from services.worker.rate_limits.limiter import ProviderRateLimiter, QuotaShare, RateLimiters

# The scheduler measures over 3 seconds (`rate_meter`), so a lost report still leaves two.
_REPORT_SECONDS = 1.0
# How late a 429 is reported; the leader assigns every half second.
POLL_SECONDS = 0.25

log = get_logger()


class NatsRateLimits:
    """A lost report does no harm: all its counts are since the worker started."""

    def __init__(
        self,
        *,
        connection: Client,
        bucket: Bucket,
        pool: str,
        worker_id: str,
        limiters: RateLimiters,
        clock: Clock,
    ) -> None:
        self._connection = connection
        self._bucket = bucket
        self._pool = pool
        self._worker_id = worker_id
        self._limiters = limiters
        self._clock = clock
        # Key to when it was reported, and how much was sent and rate limited by then.
        self._reported: dict[str, tuple[float, int, int]] = {}
        self._quotas: dict[str, work_messages_pb2.RateQuota] = {}

    async def report_due(self) -> None:
        """Reports each second while requests are sent or wait, and at once after a 429."""
        now = self._clock.monotonic()
        for limiter in self._limiters:
            if limiter.key and self._is_due(limiter, now):
                # Before the report, so that the first second of a new worker is limited already.
                self._apply_known_quota(limiter)
                await self._report(limiter)
                self._reported[limiter.key] = (now, limiter.sent, limiter.rate_limited)

    async def follow_quotas(self) -> None:
        """Runs until cancelled. The last quota stays in force without a leader."""
        async for entry in self._bucket.watch(messaging.quotas_of_pool(self._pool)):
            self._on_quota(entry)

    def _is_due(self, limiter: ProviderRateLimiter, now: float) -> bool:
        at, sent, rate_limited = self._reported.get(limiter.key, (float("-inf"), 0, 0))
        has_news = limiter.sent > sent or limiter.requests_waiting_for_quota > 0
        return has_news and (limiter.rate_limited > rate_limited or now >= at + _REPORT_SECONDS)

    async def _report(self, limiter: ProviderRateLimiter) -> None:
        """A report that does not fit a message does not block the others."""
        try:
            payload = self._to_proto(limiter).SerializeToString()
            await self._connection.publish(messaging.rate_subject(self._pool, limiter.key), payload)
        except TRANSIENT_NATS as error:
            log.info("rates not reported", rate_limit_key=limiter.key, error=repr(error))
        except ValueError as error:
            log.error("rates fit no message", rate_limit_key=limiter.key, error=repr(error))

    def _to_proto(self, limiter: ProviderRateLimiter) -> work_messages_pb2.RateReport:
        report = work_messages_pb2.RateReport(
            worker_id=self._worker_id,
            rate_limit_key=limiter.key,
            sent=limiter.sent,
            rate_limited=limiter.rate_limited,
            requests_waiting_for_quota=limiter.requests_waiting_for_quota,
            allowed_requests_per_second=limiter.allowed.requests,
            allowed_tokens_per_second=limiter.allowed.tokens,
            request_retries=limiter.request_retries,
        )
        if limiter.resume_at is not None and limiter.resume_at > self._clock.now():
            report.resume_at.FromDatetime(limiter.resume_at)
        return report

    def _on_quota(self, entry: BucketEntry) -> None:
        """A deleted quota leaves no limit: no worker has sent requests for a long time."""
        _, key = messaging.split_quota_key(entry.key)
        try:
            quota = work_messages_pb2.RateQuota.FromString(entry.value or b"")
        except DecodeError as error:
            log.warning("unreadable quota", rate_limit_key=key, error=str(error))
            return
        self._quotas[key] = quota
        if entry.value is None:
            del self._quotas[key]
        limiter = self._limiters.by_key(key)
        if limiter is not None:
            limiter.apply_quota(quota_from_proto(quota, self._worker_id))

    def _apply_known_quota(self, limiter: ProviderRateLimiter) -> None:
        """The quota may have arrived before this worker's first request under its key."""
        if limiter.key not in self._reported and limiter.key in self._quotas:
            limiter.apply_quota(quota_from_proto(self._quotas[limiter.key], self._worker_id))


def quota_from_proto(quota: work_messages_pb2.RateQuota, worker_id: str) -> QuotaShare:
    """The worker's share of it; a worker without one takes the smallest share."""
    share = quota.shares.get(worker_id, min(quota.shares.values(), default=1.0))
    has_requests = quota.HasField("requests_per_second")
    has_tokens = quota.HasField("tokens_per_second")
    return QuotaShare(
        requests=quota.requests_per_second * share if has_requests else None,
        tokens=quota.tokens_per_second * share if has_tokens else None,
        resume_at=quota.resume_at.ToDatetime(UTC) if quota.HasField("resume_at") else None,
    )
