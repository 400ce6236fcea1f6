"""The bucket QUARANTINE_<pool>: executions of samples alone in a worker that have not ended."""

from proctor.values import messaging
from services.common.nats import streams
from services.common.nats.bucket import Bucket
from services.common.nats.connection import TRANSIENT_NATS
from services.common.nats.jetstream import JetStream
from services.common.structured_logs import get_logger
from services.worker.execution.shard import Shard

log = get_logger()


class NatsQuarantine:
    """Outside of the work stream, which counts deliveries: most samples of these only waited."""

    def __init__(self, jetstream: JetStream, pool: str) -> None:
        self._bucket = Bucket(jetstream, streams.quarantine_bucket(pool))

    async def begin(self, shard: Shard, sample: int) -> int:
        """Raises one of TRANSIENT_NATS."""
        key = self._key(shard, sample)
        stored = await self._bucket.get(key)
        earlier = int(stored) if stored and stored.isdigit() else 0
        await self._bucket.put(key, str(earlier + 1).encode())
        return earlier

    async def end(self, shard: Shard, sample: int) -> None:
        try:
            await self._bucket.delete(self._key(shard, sample))
        except TRANSIENT_NATS as error:
            # The sample has its outcome, or counts as one that ended a worker once too often.
            log.info("execution not ended in quarantine", run_id=shard.run_id, error=repr(error))

    @staticmethod
    def _key(shard: Shard, sample: int) -> str:
        return messaging.quarantine_key(shard.run_id, shard.epoch, shard.rollout, sample)
