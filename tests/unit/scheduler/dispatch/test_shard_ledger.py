"""The leader's view of the shards of a run."""

from services.scheduler.dispatch.shard_ledger import ShardLedger
from services.scheduler.planning.shard import MAX_SHARD_BYTES, FilledShard, Shard


def shard(number: int) -> Shard:
    return Shard(number, 0, 0, [number], 1)


def test_fewer_than_wanted_means_that_all_are_read() -> None:
    ledger = ShardLedger()
    ledger.add_ready([shard(0), shard(1)], wanted=2)
    assert not ledger.has_read_all
    assert ledger.last_read == 1
    ledger.add_ready([shard(5)], wanted=2)
    assert ledger.has_read_all
    assert not ledger.is_drained


def test_sent_shards_are_on_the_wire_until_they_are_done() -> None:
    ledger = ShardLedger()
    ledger.add_ready([shard(0), shard(1)], wanted=3)
    ledger.sent([FilledShard(one, [b""]) for one in ledger.next_ready(2)])
    assert ledger.is_drained
    assert ledger.done_among({0: 1, 7: 1}) == [0]
    ledger.remove_done([0])
    assert set(ledger.dispatched) == {1}
    assert ledger.take_unsaved_done() == [0]
    assert ledger.take_unsaved_done() == []


def test_shard_is_not_done_before_its_last_outcome() -> None:
    ledger = ShardLedger()
    ledger.reset([Shard(0, 0, 0, [5], size=64, attempt=2)])
    assert ledger.done_among({0: 63}) == []
    assert ledger.done_among({0: 64}) == [0]


def test_reset_reads_what_waits_again() -> None:
    ledger = ShardLedger()
    ledger.add_ready([shard(0)], wanted=2)
    ledger.reset([shard(0)])
    assert ledger.last_read == -1
    assert not ledger.is_drained


def test_mean_of_samples_is_of_the_shards_that_are_dispatched() -> None:
    ledger = ShardLedger()
    assert ledger.mean_samples == 0
    ledger.reset([Shard(0, 0, 0, [5], size=64, attempt=2)])
    ledger.add_ready([Shard(number, 0, 0, range(128), 128) for number in (1, 2)], wanted=3)
    ledger.sent([FilledShard(one, [b""]) for one in ledger.next_ready(1)])
    assert ledger.mean_samples == 96
    ledger.remove_done([0, 0, 7])
    assert ledger.mean_samples == 128


def test_bytes_on_the_stream_are_those_of_what_is_sent_and_not_done() -> None:
    ledger = ShardLedger()
    ledger.reset([shard(0)])
    assert ledger.dispatched_bytes == MAX_SHARD_BYTES
    ledger.add_ready([shard(1), shard(2)], wanted=3)
    ledger.sent([FilledShard(one, [b"12345"]) for one in ledger.next_ready(2)])
    assert ledger.dispatched_bytes == MAX_SHARD_BYTES + 10
    ledger.remove_done([0, 1, 1, 7])
    assert ledger.dispatched_bytes == 5
    ledger.reset([])
    assert ledger.dispatched_bytes == 0
