"""Tells the leader what this worker met at its providers, and hears how fast it may ask."""

from __future__ import annotations

from datetime import UTC

from google.protobuf.message import DecodeError
from nats.aio.client import Client

from proctor.v1 import work_messages_pb2
from services.common import subjects
from services.common.clock import Clock
from services.common.jetstream import TRANSIENT_NATS, Bucket, BucketEntry
from services.common.structured_logs import get_logger
from services.worker.rate_limits.limiter import Granted, Pace, Paces

_REPORT_SECONDS = 1.0
LOOK_SECONDS = 0.25

log = get_logger()


class NatsPaces:
    """A lost report does no harm: all its counts are since the worker began."""

    def __init__(
        self, connection: Client, bucket: Bucket, worker_id: str, paces: Paces, clock: Clock
    ) -> None:
        self._connection = connection
        self._bucket = bucket
        self._worker_id = worker_id
        self._paces = paces
        self._clock = clock
        # Pace to when it was reported, how much was sent by then, and how much of that was refused.
        self._told: dict[str, tuple[float, int, int]] = {}
        self._grants: dict[str, work_messages_pb2.RateQuota] = {}

    async def report_due(self) -> None:
        """Each second while something is asked or waits, and at once when a provider refuses."""
        now = self._clock.monotonic()
        for pace in self._paces:
            if pace.name and self._is_due(pace, now):
                self._obey(pace)
                await self._report(pace)
                self._told[pace.name] = (now, pace.sent, pace.limited)

    async def follow_grants(self) -> None:
        """For ever. What was granted last holds while there is no leader."""
        async for entry in self._bucket.watch():
            self._hear(entry)

    def _is_due(self, pace: Pace, now: float) -> bool:
        at, sent, limited = self._told.get(pace.name, (float("-inf"), 0, 0))
        has_news = pace.sent > sent or pace.waiting > 0
        return has_news and (pace.limited > limited or now >= at + _REPORT_SECONDS)

    async def _report(self, pace: Pace) -> None:
        """One that no message can hold keeps no other from being sent."""
        try:
            payload = self._report_of(pace).SerializeToString()
            await self._connection.publish(subjects.rate_subject(pace.name), payload)
        except TRANSIENT_NATS as error:
            log.info("pace not reported", pace=pace.name, error=repr(error))
        except ValueError as error:
            log.error("pace fits no message", pace=pace.name, error=repr(error))

    def _report_of(self, pace: Pace) -> work_messages_pb2.RateReport:
        report = work_messages_pb2.RateReport(
            worker_id=self._worker_id,
            rate_limit_key=pace.name,
            sent=pace.sent,
            rate_limited=pace.limited,
            waiting=pace.waiting,
            allowed_requests_per_second=pace.allowed.requests,
            allowed_tokens_per_second=pace.allowed.tokens,
            retries=pace.retries,
        )
        if pace.told_to_resume_at is not None and pace.told_to_resume_at > self._clock.now():
            report.resume_at.FromDatetime(pace.told_to_resume_at)
        return report

    def _hear(self, entry: BucketEntry) -> None:
        """A grant that is dropped leaves no limit: nobody has asked for a long time."""
        try:
            grant = work_messages_pb2.RateQuota.FromString(entry.value or b"")
        except DecodeError as error:
            log.error("unreadable grant", pace=entry.key, error=str(error))
            return
        self._grants[entry.key] = grant
        if entry.value is None:
            del self._grants[entry.key]
        pace = self._paces.named(entry.key)
        if pace is not None:
            pace.grant(granted_to(self._worker_id, grant))

    def _obey(self, pace: Pace) -> None:
        """A grant may have been there before anything was asked here under its pace."""
        if pace.name not in self._told and pace.name in self._grants:
            pace.grant(granted_to(self._worker_id, self._grants[pace.name]))


def granted_to(worker_id: str, grant: work_messages_pb2.RateQuota) -> Granted:
    """The worker's part of it; who is not named takes the smallest share."""
    share = grant.shares.get(worker_id, min(grant.shares.values(), default=1.0))
    has_requests = grant.HasField("requests_per_second")
    has_tokens = grant.HasField("tokens_per_second")
    return Granted(
        requests=grant.requests_per_second * share if has_requests else None,
        tokens=grant.tokens_per_second * share if has_tokens else None,
        resume_at=grant.resume_at.ToDatetime(UTC) if grant.HasField("resume_at") else None,
    )
