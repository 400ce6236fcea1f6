"""The leader's view of the shards of one run: which are dispatched and not done, and which come next."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from services.scheduler.planning.shard import MAX_SHARD_BYTES, FilledShard, Shard


@dataclass
class ShardLedger:
    """A view of the stored shards, bounded by the credit; made anew from the store when in doubt.

    `last_read` is the highest number that was read from the store.
    """

    dispatched: dict[int, Shard] = field(default_factory=dict)
    last_read: int = -1
    has_read_all: bool = False
    _ready: deque[Shard] = field(default_factory=deque)
    _unsaved_done: list[int] = field(default_factory=list)
    _sent_bytes: dict[int, int] = field(default_factory=dict)
    _dispatched_bytes: int = 0
    _dispatched_samples: int = 0

    def reset(self, dispatched: Sequence[Shard]) -> None:
        """Starts over with the shards that are stored as dispatched; waiting ones are read again."""
        self.dispatched = {shard.number: shard for shard in dispatched}
        self.last_read = -1
        # Shards that were given back keep their low numbers, so the reading starts at the first one again.
        self.has_read_all = False
        self._ready.clear()
        self._unsaved_done = []
        self._sent_bytes.clear()
        self._dispatched_bytes = len(self.dispatched) * MAX_SHARD_BYTES
        self._dispatched_samples = sum(shard.size for shard in dispatched)

    @property
    def dispatched_bytes(self) -> int:
        """Bytes on the stream. A shard sent before this view was made counts as a full one.

        A running sum: each run of a pool asks for those of all others before it sends.
        """
        return self._dispatched_bytes

    @property
    def mean_samples(self) -> float:
        """Samples of a dispatched shard in the mean, of sums that are kept; 0 where none is dispatched."""
        return self._dispatched_samples / max(len(self.dispatched), 1)

    @property
    def is_drained(self) -> bool:
        """Nothing waits to be dispatched."""
        return self.has_read_all and not self._ready

    @property
    def ready_count(self) -> int:
        return len(self._ready)

    def add_ready(self, shards: Sequence[Shard], wanted: int) -> None:
        """Adds what the store returned for `wanted` shards; fewer mean that there are no more."""
        self._ready.extend(shards)
        self.has_read_all = len(shards) < wanted
        if shards:
            self.last_read = shards[-1].number

    def next_ready(self, limit: int) -> Sequence[Shard]:
        """The next ones, in order; they stay until `sent`."""
        return [self._ready[index] for index in range(min(limit, len(self._ready)))]

    def done_among(self, recorded: Mapping[int, int]) -> Sequence[int]:
        """Dispatched shards of which every outcome is recorded."""
        shards = self.dispatched
        return [
            number for number, count in recorded.items() if number in shards and count >= shards[number].size
        ]

    def remove_done(self, done: Sequence[int]) -> None:
        """Frees their credit; the next write stores it."""
        for number in done:
            self._release(number)
        self._unsaved_done += done

    def take_unsaved_done(self) -> Sequence[int]:
        taken, self._unsaved_done = self._unsaved_done, []
        return taken

    def sent(self, shards: Sequence[FilledShard]) -> None:
        """The first of the ready shards are dispatched now."""
        for filled in shards:
            self._ready.popleft()
            self._release(filled.shard.number)
            self.dispatched[filled.shard.number] = filled.shard
            self._sent_bytes[filled.shard.number] = filled.size_bytes
            self._dispatched_bytes += filled.size_bytes
            self._dispatched_samples += filled.shard.size

    def _release(self, number: int) -> None:
        if (shard := self.dispatched.pop(number, None)) is not None:
            self._dispatched_samples -= shard.size
            self._dispatched_bytes -= self._sent_bytes.pop(number, MAX_SHARD_BYTES)
