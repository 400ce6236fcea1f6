"""Shards in flight: delivered to this worker and not yet acknowledged."""

import asyncio
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from enum import StrEnum

from proctor.values.priority import Priority
from proctor.values.run import RunId
from services.worker.consumer.ports import ShardMessage
from services.worker.execution.shard import Shard, ShardSample

# One may be chance, as a node that went away. Each more costs an engine's restart of minutes.
_FAILED_DELIVERIES_ALLOWED = 2
# Rollouts run in sandboxes, which end no worker. They take minutes, in which a worker may end for other
# reasons.
_FAILED_ROLLOUTS_ALLOWED = 5


class Abandoned(StrEnum):
    """Why a shard was not executed to its end."""

    RUN_FINISHED = "run finished"
    RUN_WAITS = "run waits"
    DRAINING = "draining"


class InFlightShard:
    """One shard from delivery to acknowledgement; `message` is the latest delivery.

    Samples that this worker executes already, for an earlier attempt of the shard, are left to that attempt
    unless it forwards them itself.
    """

    def __init__(
        self, message: ShardMessage, priority: Priority, earlier: Sequence["InFlightShard"] = ()
    ) -> None:
        self.message = message
        self.shard = message.shard
        self.rollouts = sum(sample.rollout_spec is not None for sample in message.shard.samples)
        self.priority = priority
        self.key = _key(message)
        self.failed_deliveries = message.failed_deliveries
        # A reconciled shard may come back while its first attempt still runs here.
        left_to_earlier = {number for other in earlier for number in other.unfinished}
        samples = (sample for sample in message.shard.samples if sample.number not in left_to_earlier)
        self.unfinished: dict[int, ShardSample] = {sample.number: sample for sample in samples}
        self.removed = asyncio.Event()
        self._earlier = earlier
        self.published: set[asyncio.Future[None]] = set()
        self.failed = 0
        self.is_forwarded = False
        self.has_started = False
        self.executing: asyncio.Task[object] | None = None
        self.abandoned: Abandoned | None = None

    @property
    def needs_splitting(self) -> bool:
        """Whether so many deliveries failed that its samples are sent out one by one."""
        allowed = _FAILED_ROLLOUTS_ALLOWED if self.rollouts else _FAILED_DELIVERIES_ALLOWED
        return len(self.shard.samples) > 1 and self.failed_deliveries >= allowed

    @property
    def is_suspect(self) -> bool:
        """Whether it is a single sample that may have ended a worker or an engine."""
        suspected = _FAILED_ROLLOUTS_ALLOWED if self.rollouts else 1
        return len(self.shard.samples) == 1 and self.failed_deliveries >= suspected

    def abandon(self, reason: Abandoned) -> None:
        """Stops its execution; outcomes so far are still published."""
        self.abandoned = self.abandoned or reason
        if self.executing is not None:
            self.executing.cancel()

    async def until_published(self) -> None:
        """Returns when every outcome so far is stored durably; raises where one cannot be published."""
        if self.published:
            await asyncio.wait(self.published)  # shared with other shards, so never cancelled here
        for each in self.published:
            each.result()
        # Their outcomes are part of this shard's, so its acknowledgement waits for them too.
        for other in self._earlier:
            await other.removed.wait()


class InFlightShards:
    def __init__(self, remembered: int = 1024) -> None:
        self._by_key: dict[tuple[str, int], InFlightShard] = {}
        self._by_shard: dict[tuple[RunId, int, int], list[InFlightShard]] = {}
        self._finished: OrderedDict[tuple[str, int], None] = OrderedDict()
        self._remembered = remembered

    def __len__(self) -> int:
        return len(self._by_key)

    def __iter__(self) -> Iterator[InFlightShard]:
        return iter(list(self._by_key.values()))

    def add(self, message: ShardMessage, priority: Priority) -> InFlightShard | None:
        """None where this is a redelivery of a shard in flight, which goes on under the new delivery."""
        key = _key(message)
        known = self._by_key.get(key)
        if known is not None:
            known.message = message
            return None
        siblings = self._by_shard.setdefault(_shard_key(message.shard), [])
        numbers = {sample.number for sample in message.shard.samples}
        executing = (other for other in siblings if not other.is_forwarded)
        earlier = [other for other in executing if not numbers.isdisjoint(other.unfinished)]
        in_flight = self._by_key[key] = InFlightShard(message, priority, earlier)
        siblings.append(in_flight)
        return in_flight

    def is_finished(self, message: ShardMessage) -> bool:
        """Whether this worker published its outcomes lately and only the acknowledgement was lost."""
        return _key(message) in self._finished

    def remove(self, in_flight: InFlightShard, *, is_finished: bool) -> None:
        key, shard_key = in_flight.key, _shard_key(in_flight.shard)
        del self._by_key[key]
        self._by_shard[shard_key].remove(in_flight)
        if not self._by_shard[shard_key]:
            del self._by_shard[shard_key]
        in_flight.removed.set()
        if is_finished:
            self._finished[key] = None
            # Bounds the memory; a shard that is forgotten is only asked twice.
            if len(self._finished) > self._remembered:
                self._finished.popitem(last=False)

    async def extend_ack_deadlines(self) -> None:
        for in_flight in self:
            await in_flight.message.extend_ack_deadline()


def _key(message: ShardMessage) -> tuple[str, int]:
    return message.message_id, message.shard.epoch


def _shard_key(shard: Shard) -> tuple[RunId, int, int]:
    """The same for all attempts and parts of a shard."""
    return shard.run_id, shard.epoch, shard.number
