"""Joins what keeps the streams and buckets of NATS: only the scheduler makes them."""

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import NoReturn

from services.common.lifecycle import every
from services.common.nats.stream_maker import StreamLimits, StreamMaker
from services.common.nats.stream_probes import StreamProbes
from services.scheduler.postgres import Connections
from services.scheduler.settings import SchedulerSettings
from services.scheduler.streams.keep_streams import KeepStreams
from services.scheduler.workers.wiring import WorkerParts

# Workers wait until there are streams, at a first start and after a loss.
_KEEP_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamParts:
    keep: KeepStreams

    def loops(self) -> Mapping[str, Coroutine[None, None, NoReturn]]:
        return {"keep streams": every(_KEEP_SECONDS, self.keep.keep, name="keep streams")}


def make_streams(
    settings: SchedulerSettings, connections: Connections, *, workers: WorkerParts
) -> StreamParts:
    limits = StreamLimits(
        replicas=settings.stream_replicas,
        work_bytes=settings.work_stream_bytes,
        outcome_bytes=settings.outcome_stream_bytes,
    )
    connection = connections.jetstream.connection
    pools = [pool.name for pool in workers.pools.pools]
    keep = KeepStreams(
        streams=StreamMaker(connection=connection, pools=pools, limits=limits),
        probes=StreamProbes(connection=connection),
        clock=connections.clock,
    )
    return StreamParts(keep=keep)
