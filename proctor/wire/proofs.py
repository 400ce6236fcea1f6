"""Proofs with one key, which scheduler and results share and workers lack.

That samples were dispatched: the scheduler makes it, a worker echoes it, results checks it. That a progress
report is of results: results makes it, the scheduler checks it.
"""

import hmac
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from google.protobuf.message import DecodeError

from proctor.v1 import work_messages_pb2
from proctor.values.run import RunId

# A header of the message.
PROGRESS_PROOF = "Proctor-Progress-Proof"
# Messages of workers about a rollout.
RolloutMessage = work_messages_pb2.PutArtifactRequest | work_messages_pb2.ReportBudgetUseRequest


@dataclass(frozen=True, slots=True)
class DispatchedShard:
    """The content of one message of the scheduler. `samples` are ascending numbers in the run, as ranges."""

    run_id: str
    epoch: int
    shard: int
    attempt: int
    rollout: int
    samples: tuple[range, ...]

    def proof(self, key: str) -> work_messages_pb2.DispatchProof:
        """Raises ValueError without a key."""
        dispatched = work_messages_pb2.DispatchedShard(
            run_id=self.run_id,
            epoch=self.epoch,
            shard=self.shard,
            attempt=self.attempt,
            rollout=self.rollout,
            samples=_ranges_to_proto(self.samples),
        ).SerializeToString()
        return work_messages_pb2.DispatchProof(dispatched=dispatched, hmac=_dispatch_hmac(dispatched, key))


def as_ranges(samples: Iterable[int]) -> tuple[range, ...]:
    """The numbers as the fewest ranges, ascending."""
    numbers = sorted(set(samples))
    # Those of most shards follow each other.
    if numbers and numbers[-1] - numbers[0] == len(numbers) - 1:
        return (range(numbers[0], numbers[-1] + 1),)
    ranges: list[range] = []
    for sample in numbers:
        if ranges and sample == ranges[-1].stop:
            ranges[-1] = range(ranges[-1].start, sample + 1)
        else:
            ranges.append(range(sample, sample + 1))
    return tuple(ranges)


def prove_dispatch(work: work_messages_pb2.WorkShard, key: str) -> None:
    """Fills the dispatch proof of a complete message with samples."""
    samples = as_ranges(sample.sample for sample in work.samples)
    dispatched = DispatchedShard(work.run_id, work.epoch, work.shard, work.attempt, work.rollout, samples)
    work.dispatch_proof.CopyFrom(dispatched.proof(key))


def proved_shard(proof: work_messages_pb2.DispatchProof, key: str) -> DispatchedShard | None:
    """What the scheduler dispatched with this proof; None for a proof that it did not make."""
    # Nothing is parsed before: a forged proof may have any content.
    if not hmac.compare_digest(proof.hmac, _dispatch_hmac(proof.dispatched, key)):
        return None
    shard = work_messages_pb2.DispatchedShard.FromString(proof.dispatched)
    samples = tuple([range(each.first, each.first + each.count) for each in shard.samples])
    return DispatchedShard(shard.run_id, shard.epoch, shard.shard, shard.attempt, shard.rollout, samples)


def dispatch_of(sent: RolloutMessage, key: str) -> DispatchedShard | None:
    """The shard of the rollout; None where the message does not prove that its worker was sent the sample."""
    shard = proved_shard(sent.proof, key)
    if shard is None or (shard.run_id, shard.epoch) != (sent.run_id, sent.epoch):
        return None
    return shard if any(sent.sample in samples for samples in shard.samples) else None


def run_of(sent: RolloutMessage) -> RunId:
    """Raises DecodeError where the message has no id of a run."""
    try:
        return RunId(str(UUID(sent.run_id)))
    except ValueError as error:
        raise DecodeError("run_id is not a UUID") from error


def proved_samples(
    batch: work_messages_pb2.OutcomeBatch, key: str
) -> dict[tuple[int, int, int], frozenset[int]]:
    """Samples by shard, attempt and rollout for which the batch has a valid dispatch proof."""
    proved: dict[tuple[int, int, int], frozenset[int]] = {}
    for proof in batch.dispatch_proofs:
        shard = proved_shard(proof, key)
        if shard is not None and (shard.run_id, shard.epoch) == (batch.run_id, batch.epoch):
            dispatch = (shard.shard, shard.attempt, shard.rollout)
            proved[dispatch] = proved.get(dispatch, frozenset()).union(*shard.samples)
    return proved


def _dispatch_hmac(dispatched: bytes, key: str) -> bytes:
    """HMAC-SHA-256. Raises ValueError without a key."""
    if not key:
        raise ValueError("a dispatch proof needs a key")
    # The prefix distinguishes this input from that of a progress proof, which has the same key.
    return hmac.digest(key.encode(), b"dispatch/" + dispatched, "sha256")


def _ranges_to_proto(ranges: Iterable[range]) -> Sequence[work_messages_pb2.SampleRange]:
    return [work_messages_pb2.SampleRange(first=each.start, count=len(each)) for each in ranges]


def progress_proof(payload: bytes, key: str) -> str:
    """HMAC-SHA-256 over the report as it is sent. Raises ValueError without a key."""
    if not key:
        raise ValueError("a progress proof needs a key")
    # The prefix distinguishes this input from that of a dispatch proof, which has the same key.
    return hmac.new(key.encode(), b"progress/" + payload, "sha256").hexdigest()


def is_progress_proved(payload: bytes, proof: str, key: str) -> bool:
    # A header may have any bytes.
    return hmac.compare_digest(proof.encode(errors="replace"), progress_proof(payload, key).encode())
