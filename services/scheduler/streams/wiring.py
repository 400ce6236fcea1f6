"""Joins what keeps the streams and buckets of NATS: only the scheduler makes them."""

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import NoReturn

from services.common.lifecycle import every
from services.common.nats.stream_maker import StreamLimits, StreamMaker
from services.scheduler.postgres import Connections
from services.scheduler.settings import SchedulerSettings
from services.scheduler.workers.wiring import WorkerParts

# Workers wait until there are streams, at a first start and after a loss.
_MAKE_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamParts:
    maker: StreamMaker

    def refused(self) -> Mapping[str, str]:
        return self.maker.refused

    def loops(self) -> Mapping[str, Coroutine[None, None, NoReturn]]:
        return {"make streams": every(_MAKE_SECONDS, self.maker.make_missing, name="make streams")}


def make_streams(
    settings: SchedulerSettings, connections: Connections, *, workers: WorkerParts
) -> StreamParts:
    limits = StreamLimits(
        replicas=settings.stream_replicas,
        work_bytes=settings.work_stream_bytes,
        outcome_bytes=settings.outcome_stream_bytes,
    )
    pools = [pool.name for pool in workers.pools.pools]
    return StreamParts(maker=StreamMaker(connection=connections.jetstream.connection, pools=pools, limits=limits))
