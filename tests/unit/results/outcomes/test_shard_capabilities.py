"""Outcomes are recorded only for shards that the scheduler dispatched."""

from proctor.v1 import work_messages_pb2
from proctor.values.messaging import shard_capability
from services.results.outcomes.proto import drop_unproved

KEY, RUN = "a key of both", "11111111-1111-4111-8111-111111111111"


def batch_of(*shards: int, epoch: int = 1) -> work_messages_pb2.OutcomeBatch:
    """With the right capabilities of the shards."""
    batch = work_messages_pb2.OutcomeBatch(run_id=RUN, epoch=epoch, worker_id="w")
    for shard in shards:
        batch.outcomes.add(sample=shard, shard=shard, attempt=1).answer.text = "A"
        capability = shard_capability(KEY, RUN, 1, shard, 1)
        batch.capabilities.add(shard=shard, attempt=1, capability=capability)
    return batch


def test_outcomes_of_dispatched_shards_are_kept() -> None:
    batch = batch_of(3, 4)
    assert drop_unproved(batch, KEY) == 0
    assert [outcome.shard for outcome in batch.outcomes] == [3, 4]


def test_a_shard_without_its_capability_is_dropped_alone() -> None:
    batch = batch_of(3, 4)
    batch.outcomes.add(sample=5, shard=5, attempt=1).answer.text = "forged"
    batch.outcomes.add(sample=3, shard=3, attempt=2).answer.text = "forged"
    assert drop_unproved(batch, KEY) == 2
    assert [outcome.sample for outcome in batch.outcomes] == [3, 4]


def test_a_capability_is_of_one_run_epoch_shard_and_key() -> None:
    assert drop_unproved(batch_of(3, epoch=2), KEY) == 1
    assert drop_unproved(batch_of(3), "another key") == 1
    other_run = batch_of(3)
    other_run.run_id = "22222222-2222-4222-8222-222222222222"
    assert drop_unproved(other_run, KEY) == 1
    moved = batch_of(3)
    moved.capabilities[0].shard = moved.outcomes[0].shard = 4
    assert drop_unproved(moved, KEY) == 1
    empty = batch_of(3)
    empty.capabilities[0].capability = b""
    assert drop_unproved(empty, KEY) == 1


def test_without_a_key_there_is_no_capability() -> None:
    assert shard_capability("", RUN, 1, 3, 1) == b""
