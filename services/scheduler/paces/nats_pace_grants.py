"""Quotas in the bucket QUOTAS, where workers watch them and a new leader finds them."""

from collections.abc import Mapping
from datetime import UTC

from google.protobuf.message import DecodeError

from proctor.v1 import work_messages_pb2
from services.common.jetstream import Bucket
from services.common.structured_logs import get_logger
from services.scheduler.paces.pace import RateQuota

log = get_logger()


class NatsPaceGrants:
    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket

    async def put(self, pace: str, grant: RateQuota) -> None:
        await self._bucket.put(pace, grant_to_proto(pace, grant).SerializeToString())

    async def drop(self, pace: str) -> None:
        await self._bucket.delete(pace)

    async def stored(self) -> Mapping[str, RateQuota]:
        found: dict[str, RateQuota] = {}
        for pace, value in (await self._bucket.entries()).items():
            try:
                found[pace] = grant_from_proto(work_messages_pb2.RateQuota.FromString(value))
            except DecodeError:
                log.warning("unreadable grant", pace=pace)
        return found


def grant_to_proto(pace: str, grant: RateQuota) -> work_messages_pb2.RateQuota:
    message = work_messages_pb2.RateQuota(
        rate_limit_key=pace,
        requests_per_second=grant.requests_per_second,
        tokens_per_second=grant.tokens_per_second,
        shares=grant.shares,
    )
    if grant.resume_at is not None:
        message.resume_at.FromDatetime(grant.resume_at)
    return message


def grant_from_proto(grant: work_messages_pb2.RateQuota) -> RateQuota:
    return RateQuota(
        requests_per_second=grant.requests_per_second if grant.HasField("requests_per_second") else None,
        tokens_per_second=grant.tokens_per_second if grant.HasField("tokens_per_second") else None,
        shares=dict(grant.shares),
        resume_at=grant.resume_at.ToDatetime(UTC) if grant.HasField("resume_at") else None,
    )
