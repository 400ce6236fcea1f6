"""Outcomes are recorded only for samples that the scheduler dispatched to the worker that answers them."""

import pytest
from pydantic import SecretStr

from proctor.v1 import work_messages_pb2
from proctor.wire.proofs import DispatchedShard, as_ranges
from services.common.errors import SharedKeyUnusable
from services.common.process import usable_dispatch_proof_key
from services.results.outcomes.proto import drop_unproved

KEY, RUN = "a key of both", "11111111-1111-4111-8111-111111111111"
# The samples of shard n are 10 n to 10 n + 3.
SIZE = 4


def add_dispatch_proof(batch: work_messages_pb2.OutcomeBatch, shard: int, *samples: int) -> None:
    """As the scheduler makes it."""
    ranges = as_ranges(samples or range(10 * shard, 10 * shard + SIZE))
    batch.dispatch_proofs.append(DispatchedShard(RUN, 1, shard, 1, 0, ranges).proof(KEY))


def changed(proof: work_messages_pb2.DispatchProof, **changes: int) -> None:
    """Fields of what was dispatched, under the signature of what really was."""
    shard = work_messages_pb2.DispatchedShard.FromString(proof.dispatched)
    for name, value in changes.items():
        setattr(shard.samples[0] if name == "count" else shard, name, value)
    proof.dispatched = shard.SerializeToString()


def batch_of(*shards: int, epoch: int = 1) -> work_messages_pb2.OutcomeBatch:
    """One outcome of each shard, with the right dispatch proofs."""
    batch = work_messages_pb2.OutcomeBatch(run_id=RUN, epoch=epoch, worker_id="w")
    for shard in shards:
        batch.outcomes.add(sample=10 * shard, shard=shard, attempt=1).answer.text = "A"
        add_dispatch_proof(batch, shard)
    return batch


def test_outcomes_of_dispatched_shards_are_kept() -> None:
    batch = batch_of(3, 4)
    batch.outcomes.add(sample=43, shard=4, attempt=1).answer.text = "B"
    assert drop_unproved(batch, KEY) == 0
    assert [outcome.sample for outcome in batch.outcomes] == [30, 40, 43]


def test_a_shard_without_its_dispatch_proof_is_dropped_alone() -> None:
    batch = batch_of(3, 4)
    batch.outcomes.add(sample=50, shard=5, attempt=1).answer.text = "forged"
    batch.outcomes.add(sample=30, shard=3, attempt=2).answer.text = "forged"
    assert drop_unproved(batch, KEY) == 2
    assert [outcome.sample for outcome in batch.outcomes] == [30, 40]


@pytest.mark.parametrize(("sample", "rollout"), [(34, 0), (29, 0), (40, 0), (30, 1)])
def test_a_dispatch_proof_covers_only_samples_that_were_dispatched(sample: int, rollout: int) -> None:
    batch = batch_of(3)
    batch.outcomes.add(sample=sample, rollout=rollout, shard=3, attempt=1).answer.text = "forged"
    assert drop_unproved(batch, KEY) == 1
    assert [outcome.sample for outcome in batch.outcomes] == [30]


def test_samples_cannot_be_added_to_a_dispatch_proof() -> None:
    batch = batch_of(3)
    batch.outcomes[0].sample = 34
    changed(batch.dispatch_proofs[0], count=SIZE + 1)
    assert drop_unproved(batch, KEY) == 1
    everything = batch_of(3)
    changed(everything.dispatch_proofs[0], count=2**62)
    assert drop_unproved(everything, KEY) == 1
    other_rollout = batch_of(3)
    other_rollout.outcomes[0].rollout = 1
    changed(other_rollout.dispatch_proofs[0], rollout=1)
    assert drop_unproved(other_rollout, KEY) == 1


def test_parts_of_a_shard_have_a_dispatch_proof_each() -> None:
    batch = work_messages_pb2.OutcomeBatch(run_id=RUN, epoch=1)
    for sample in (7, 9, 11):
        batch.outcomes.add(sample=sample, shard=2, attempt=1).answer.text = "A"
    add_dispatch_proof(batch, 2, 7, 8)
    add_dispatch_proof(batch, 2, 11, 9)
    assert drop_unproved(batch, KEY) == 0


def test_a_dispatch_proof_is_of_one_run_epoch_shard_and_key() -> None:
    assert drop_unproved(batch_of(3, epoch=2), KEY) == 1
    assert drop_unproved(batch_of(3), "another key") == 1
    other_run = batch_of(3)
    other_run.run_id = "22222222-2222-4222-8222-222222222222"
    assert drop_unproved(other_run, KEY) == 1
    moved = batch_of(3)
    moved.outcomes[0].shard = 4
    changed(moved.dispatch_proofs[0], shard=4)
    assert drop_unproved(moved, KEY) == 1
    empty = batch_of(3)
    empty.dispatch_proofs[0].hmac = b""
    assert drop_unproved(empty, KEY) == 1


def test_nothing_is_proved_without_a_key() -> None:
    with pytest.raises(ValueError, match="needs a key"):
        DispatchedShard(RUN, 1, 3, 1, 0, (range(4),)).proof("")
    with pytest.raises(ValueError, match="needs a key"):
        drop_unproved(batch_of(3), "")


@pytest.mark.parametrize("given", ["", "short", "x" * 15])
def test_service_without_a_long_key_does_not_start(given: str) -> None:
    with pytest.raises(SharedKeyUnusable) as refused:
        usable_dispatch_proof_key(SecretStr(given))
    assert refused.value.facts["variable"] == "PROCTOR_DISPATCH_PROOF_KEY"
    assert usable_dispatch_proof_key(SecretStr("x" * 16)) == "x" * 16


def test_samples_become_the_fewest_ranges() -> None:
    assert as_ranges([]) == ()
    assert as_ranges([5, 3, 4, 9, 4]) == (range(3, 6), range(9, 10))
