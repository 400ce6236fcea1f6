"""The leader's view of the shards of one run: which are in flight, and which come next."""

from collections import deque
from collections.abc import Mapping, Sequence

from services.scheduler.planning.shard import Shard


class ShardLedger:
    """A view of the stored shards, bounded by the credit; made anew from the store when in doubt."""

    def __init__(self) -> None:
        self._on_wire: dict[int, Shard] = {}
        self._ready: deque[Shard] = deque()
        self._unsaved_done: list[int] = []
        self._last_read = -1
        self.has_read_all = False

    def reset(self, in_flight: Sequence[Shard]) -> None:
        """Starts over with the shards that are stored as dispatched; waiting ones are read again."""
        self._on_wire = {shard.number: shard for shard in in_flight}
        self._ready.clear()
        self._unsaved_done = []
        self._last_read = -1
        self.has_read_all = False

    @property
    def in_flight(self) -> Mapping[int, Shard]:
        return self._on_wire

    @property
    def last_read(self) -> int:
        """The highest number that was read from the store."""
        return self._last_read

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
            self._last_read = shards[-1].number

    def next_ready(self, limit: int) -> Sequence[Shard]:
        """The next ones, in order; they stay until `sent`."""
        return [self._ready[index] for index in range(min(limit, len(self._ready)))]

    def done_among(self, recorded: Mapping[int, int]) -> Sequence[int]:
        """Shards in flight of which every outcome is recorded."""
        in_flight = self._on_wire
        return [
            number
            for number, count in recorded.items()
            if number in in_flight and count >= in_flight[number].size
        ]

    def mark_done(self, done: Sequence[int]) -> None:
        """Frees their credit; the next write stores it."""
        for number in done:
            self._on_wire.pop(number, None)
        self._unsaved_done += done

    def take_unsaved_done(self) -> Sequence[int]:
        taken, self._unsaved_done = self._unsaved_done, []
        return taken

    def sent(self, shards: Sequence[Shard]) -> None:
        """The first of the ready shards are in flight now."""
        for shard in shards:
            self._ready.popleft()
            self._on_wire[shard.number] = shard
