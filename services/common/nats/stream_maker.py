"""Makes the streams and buckets of JetStream that are missing, in sizes for which the server has room."""

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from nats.aio.client import Client
from nats.js import api
from nats.js.errors import APIError, NotFoundError

from proctor.values import messaging
from proctor.values.messaging import MIN_STREAM_BYTES, OUTCOME_STREAM_BYTES, WORK_STREAM_BYTES
from services.common.metrics import STREAM_BYTES, STREAM_LIMIT_BYTES, STREAM_MESSAGES
from services.common.nats.specs import BucketSpec
from services.common.nats.streams import (
    OUTCOMES,
    QUOTAS_BUCKET,
    RUNS_BUCKET,
    heartbeat_bucket,
    quarantine_bucket,
    switch_bucket,
    work_stream,
)
from services.common.structured_logs import error_text, get_logger

log = get_logger()

# No server of a cluster, the whole of them, this one, or the account has the storage for a stream; or the
# account allows no single stream of its size.
_NO_ROOM = frozenset({10005, 10023, 10047, 10122})
# It is made and deleted at once, to find out for how much there is room.
_TRIAL = "ROOM_TRIAL"
# The parts of their sizes in which streams are made, the first for which there is room.
_SHARES = tuple(0.75**step for step in range(14))
# The pause after streams for which there was no room at all.
_NO_ROOM_SECONDS = 10.0
_MIB = 1024**2


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamLimits:
    """Limits of the streams that are made; existing streams keep theirs. `work_bytes` are for each pool."""

    replicas: int = 1
    work_bytes: int = WORK_STREAM_BYTES
    outcome_bytes: int = OUTCOME_STREAM_BYTES


class StreamMaker:
    """Makes what is missing. An operator may have changed what exists, so it is left alone."""

    def __init__(
        self, connection: Client, pools: Collection[str], limits: StreamLimits | None = None
    ) -> None:
        self._jetstream = connection.jetstream()
        self._configs = tuple(stream_configs(pools, limits or StreamLimits()))
        self._names = [str(config.name) for config in self._configs]
        self._reported: set[str] = set()
        self._room_at = 0.0
        # By the names of missing streams and buckets: why the server does not make them.
        self.refused: Mapping[str, str] = {}
        # Names of those that exist and have the subject of probes.
        self.probed: Collection[str] = ()
        # The sequence number of the latest message of each that exists.
        self.last_messages: Mapping[str, int] = {}

    async def make_missing(self) -> None:
        """Costs one request if all of them exist. One that is refused keeps no other from being made."""
        try:
            infos = await self._jetstream.streams_info()
        except APIError as error:
            # As after a full disk, where the server may end JetStream as a whole.
            self.refused = {messaging.JETSTREAM: error.description or "the server has ended it"}
            raise
        self._report(infos)
        found = {str(info.config.name): info.config for info in infos}
        missing = [config for config in self._configs if config.name not in found]
        self.probed = [name for name in self._names if _has_probe(found.get(name))]
        self.last_messages = {str(info.config.name): info.state.last_seq for info in infos}
        if _TRIAL in found:
            # A maker ended in the middle. Until it is deleted it takes up room.
            await self._delete_trial()
        self.refused = await self._make_all(missing) if missing else {}
        for config in self._configs:
            name = str(config.name)
            if name in found and name not in self._reported and (fields := _differing(config, found[name])):
                self._reported.add(name)
                log.warning("stream differs from the settings", stream=name, fields=fields)

    async def _make_all(self, missing: Sequence[api.StreamConfig]) -> Mapping[str, str]:
        """The reasons why some were not made, by their names."""
        # Asks again: a cluster leaves a stream that has no leader just now out of its list.
        absent = [config for config in missing if not await self._exists(config)]
        # First, as they are: without a bucket no work is done, and they are small.
        buckets = [config for config in absent if not config.retention]
        refused = [await self._refusal(config) for config in buckets]
        streams = await self._fitting([config for config in absent if config.retention])
        refused += [await self._refusal(config) for config in streams]
        return {name: reason for name, reason in refused if reason}

    async def _refusal(self, config: api.StreamConfig) -> tuple[str, str]:
        """Makes it. The name and why the server did not; no reason where it did."""
        name = str(config.name)
        try:
            await self._jetstream.add_stream(config)
        except APIError as error:
            reason = error.description or error_text(error)
            if self.refused.get(name) != reason:
                log.error("stream not made", stream=name, error=error_text(error))
            if error.err_code in _NO_ROOM:
                self._room_at = _now() + _NO_ROOM_SECONDS
            return name, reason
        log.info("stream made", stream=name, max_bytes=config.max_bytes)
        return name, ""

    async def _exists(self, config: api.StreamConfig) -> bool:
        try:
            await self._jetstream.stream_info(str(config.name))
        except NotFoundError:
            return False
        return True

    async def _fitting(self, configs: Sequence[api.StreamConfig]) -> Sequence[api.StreamConfig]:
        """The streams as large as there is room for all of them, each by the same share of its size.

        The server reserves the whole size of a stream, and says of none how much it has.
        """
        # The search is some requests, so it is not repeated each second.
        shares = _SHARES if _now() >= self._room_at else _SHARES[-1:]
        cut = configs
        for share in shares if configs else ():
            cut = [config.evolve(max_bytes=_cut(config.max_bytes or 0, share)) for config in configs]
            if await self._has_room(cut):
                break
        for config, wanted in zip(cut, configs, strict=True):
            if config.max_bytes != wanted.max_bytes and config.name not in self.refused:
                log.warning(
                    "no room for the size of a stream: it is cut",
                    stream=config.name,
                    wanted_bytes=wanted.max_bytes,
                    max_bytes=config.max_bytes,
                )
        return cut

    async def _has_room(self, configs: Sequence[api.StreamConfig]) -> bool:
        size = sum(config.max_bytes or 0 for config in configs)
        trial = configs[0].evolve(name=_TRIAL, subjects=[_TRIAL], max_bytes=size)
        try:
            await self._jetstream.add_stream(trial)
        except APIError as error:
            if error.err_code in _NO_ROOM:
                return False
            raise
        await self._delete_trial()
        return True

    async def _delete_trial(self) -> None:
        # Another replica may have been faster.
        with suppress(NotFoundError):
            await self._jetstream.delete_stream(_TRIAL)

    def _report(self, infos: Iterable[api.StreamInfo]) -> None:
        """Sets the metrics, without the buckets and without what others have in the same NATS."""
        queues = {config.name for config in self._configs if config.retention}
        for info in infos:
            if info.config.name in queues:
                name = str(info.config.name)
                STREAM_MESSAGES.labels(name).set(info.state.messages)
                STREAM_BYTES.labels(name).set(info.state.bytes)
                STREAM_LIMIT_BYTES.labels(name).set(info.config.max_bytes or 0)


def _now() -> float:
    return asyncio.get_running_loop().time()


def _has_probe(found: api.StreamConfig | None) -> bool:
    """An operator may have made it without."""
    return found is not None and messaging.probe_subject(str(found.name)) in (found.subjects or ())


def _cut(size: int, share: float) -> int:
    """In whole MiB, and no less than the smallest size, unless the setting is less."""
    return size if share == 1 else max(int(size * share) // _MIB * _MIB, min(size, MIN_STREAM_BYTES))


def stream_configs(pools: Collection[str], limits: StreamLimits) -> Iterator[api.StreamConfig]:
    sizes = [(work_stream(pool), limits.work_bytes) for pool in pools]
    for spec, max_bytes in (*sizes, (OUTCOMES, limits.outcome_bytes)):
        yield api.StreamConfig(
            name=spec.name,
            subjects=[*spec.subjects, messaging.probe_subject(spec.name)],
            retention=api.RetentionPolicy.WORK_QUEUE,
            discard=api.DiscardPolicy.NEW,
            storage=api.StorageType.FILE,
            max_bytes=max_bytes,
            num_replicas=limits.replicas,
        )
    makers = (heartbeat_bucket, switch_bucket, quarantine_bucket)
    of_pools = [make(pool) for pool in pools for make in makers]
    for bucket in (RUNS_BUCKET, QUOTAS_BUCKET, *of_pools):
        yield _bucket_config(bucket, limits.replicas)


def _bucket_config(bucket: BucketSpec, replicas: int) -> api.StreamConfig:
    """A key-value bucket is a stream of this form."""
    name = f"KV_{bucket.name}"
    config = api.StreamConfig(
        name=name,
        subjects=[messaging.keys_of_bucket(bucket.name), messaging.probe_subject(name)],
        discard=api.DiscardPolicy.NEW,
        max_age=bucket.ttl_seconds,
        max_msgs_per_subject=1,
        # The settings of buckets that nats-py makes itself, which other clients expect.
        deny_delete=True,
        allow_rollup_hdrs=True,
        allow_msg_ttl=True,
        subject_delete_marker_ttl=bucket.expiry_shown_seconds,
        num_replicas=replicas,
    )
    if bucket.bounds is None:
        return config
    return config.evolve(
        discard=api.DiscardPolicy.OLD,
        max_msgs=bucket.bounds.keys,
        max_bytes=bucket.bounds.total_bytes,
        max_msg_size=bucket.bounds.value_bytes,
        # With them one message removes a key, or all keys, or stays for ever.
        allow_rollup_hdrs=False,
        allow_msg_ttl=False,
    )


def _differing(wanted: api.StreamConfig, found: api.StreamConfig) -> list[str]:
    """Fields that decide what is kept and differ from the settings; unset ones are not compared."""
    names = ("subjects", "retention", "discard", "max_bytes", "max_age", "num_replicas")
    given = [name for name in names if getattr(wanted, name) is not None]
    return [name for name in given if getattr(wanted, name) != getattr(found, name)]
