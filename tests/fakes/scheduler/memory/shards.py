"""The shards of a run in memory: they move between states as in Postgres."""

from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass, replace

from services.scheduler.planning.ports import ShardMoves
from services.scheduler.planning.shard import Shard


@dataclass(slots=True)
class StoredShard:
    shard: Shard
    epoch: int
    state: str = "planned"


StoredShards = MutableMapping[int, StoredShard]


def move(stored: StoredShards, moves: ShardMoves, epoch: int, places: float) -> int:
    """`places` are those that the group of the run has left, before what is done leaves its own."""
    for number in moves.done:
        if stored[number].state == "dispatched":
            stored[number].state = "done"
            places += 1
    # Those of a statement that is repeated have theirs.
    places += sum(stored[shard.number].state == "dispatched" for shard in moves.dispatched)
    going = moves.dispatched[: int(min(places, len(moves.dispatched)))]
    for shard in going:
        if stored[shard.number].state == "planned" and stored[shard.number].shard.attempt < shard.attempt:
            sent = replace(stored[shard.number].shard, attempt=shard.attempt)
            stored[shard.number] = StoredShard(sent, epoch, "dispatched")
    return len(going)


def put_back(stored: StoredShards, shards: Sequence[Shard], epoch: int) -> None:
    for shard in shards:
        if stored[shard.number].state == "dispatched":
            back = replace(stored[shard.number].shard, samples=[*shard.samples])
            stored[shard.number] = StoredShard(back, epoch)


def in_state(stored: StoredShards, state: str, epoch: int) -> list[Shard]:
    found = [entry.shard for entry in stored.values() if entry.state == state and entry.epoch == epoch]
    return sorted(found, key=lambda shard: shard.number)
