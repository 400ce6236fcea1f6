"""The messages this worker holds: kept from being delivered to others, and known again when they are.
What the use cases need from outside: messages that are held, where they come from, where outcomes go.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Protocol

from services.worker.execution.shard import RunId, Shard, ShardKey, ShardSample


class Abandoned(StrEnum):
    """Why asking stopped before the end."""

    RUN_ENDED = "run ended"
    RUN_WAITS = "run waits"
    DRAINING = "draining"


class Holding:
    """One shard from delivery to acknowledgement; its message is the latest delivery.

    Samples that are being asked here already, for an earlier attempt of the shard, are left to that one,
    unless it hands them on itself.
    """

    def __init__(self, message: ShardMessage, earlier: Sequence[Holding] = ()) -> None:
        self.message = message
        self.shard = message.shard
        self.key = _key(message)
        self.faults = message.faults
        left_to_earlier = {number for other in earlier for number in other.unfinished}
        samples = (sample for sample in message.shard.samples if sample.number not in left_to_earlier)
        self.unfinished: dict[int, ShardSample] = {sample.number: sample for sample in samples}
        self.settled = asyncio.Event()
        self._earlier = earlier
        self.published: set[asyncio.Future[None]] = set()
        self.failed = 0
        self.is_handed_on = False
        self.has_begun = False
        self.asking: asyncio.Task[None] | None = None
        self.abandoned: Abandoned | None = None

    def abandon(self, why: Abandoned) -> None:
        """Stops asking; what is finished already still goes out."""
        self.abandoned = self.abandoned or why
        if self.asking is not None:
            self.asking.cancel()

    async def outcomes_held(self) -> None:
        """Ends when the next stage holds every outcome so far; raises when one cannot be sent."""
        if self.published:
            await asyncio.wait(self.published)  # shared with other shards: nobody's to cancel
        for each in self.published:
            each.result()
        for other in self._earlier:
            await other.settled.wait()


class HeldMessages:
    def __init__(self, remembered: int = 1024) -> None:
        self._held: dict[ShardKey, Holding] = {}
        self._by_shard: dict[tuple[RunId, int, int], list[Holding]] = {}
        self._finished: OrderedDict[ShardKey, None] = OrderedDict()
        self._remembered = remembered

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[Holding]:
        return iter(list(self._held.values()))

    def take(self, message: ShardMessage) -> Holding | None:
        """A new holding; None where the shard is held already, which goes on under the newer delivery."""
        key = _key(message)
        held = self._held.get(key)
        if held is not None:
            held.message = message
            return None
        of_shard = self._by_shard.setdefault(_name(message.shard), [])
        numbers = {sample.number for sample in message.shard.samples}
        asked_here = (other for other in of_shard if not other.is_handed_on)
        earlier = [other for other in asked_here if not numbers.isdisjoint(other.unfinished)]
        holding = self._held[key] = Holding(message, earlier)
        of_shard.append(holding)
        return holding

    def is_finished(self, message: ShardMessage) -> bool:
        """Whether its outcomes went out from here lately and only the acknowledgement was lost."""
        return _key(message) in self._finished

    def release(self, holding: Holding, *, is_finished: bool) -> None:
        key, name = holding.key, _name(holding.shard)
        del self._held[key]
        self._by_shard[name].remove(holding)
        if not self._by_shard[name]:
            del self._by_shard[name]
        holding.settled.set()
        if is_finished:
            self._finished[key] = None
            if len(self._finished) > self._remembered:
                self._finished.popitem(last=False)

    async def keep_all(self) -> None:
        """Tells the stream that each of them is still worked on."""
        for holding in self:
            await holding.message.keep()


def _key(message: ShardMessage) -> ShardKey:
    return message.shard.key_in(message.message_id)


def _name(shard: Shard) -> tuple[RunId, int, int]:
    """The same for all attempts and pieces of a shard."""
    return shard.run_id, shard.epoch, shard.number


class ShardMessage(Protocol):
    """A work message between its delivery and its acknowledgement."""

    @property
    def shard(self) -> Shard: ...

    @property
    def message_id(self) -> str:
        """The same for every delivery of the message; empty where it was sent without one."""

    @property
    def faults(self) -> int:
        """How many earlier deliveries ended with a worker or an engine dying."""

    async def acknowledge(self) -> None:
        """All its outcomes are held durably by the next stage."""

    async def give_back(self, delay_seconds: float) -> None:
        """Another delivery, later, to any worker; counts as a fault."""

    async def drop(self) -> None:
        """Nobody waits for it any more."""

    async def keep(self) -> None:
        """It is still worked on."""

    async def send_rest(self, samples: Sequence[int], *, faults: int) -> None:
        """A new message with these samples only, which carries its history on."""

    async def send_single(self, sample: int) -> None:
        """A new message with this sample only and no history; sent twice it is there once."""
