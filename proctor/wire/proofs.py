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

    def dispatch_proof(self, key: str) -> bytes:
        """The HMAC-SHA-256 over all fields, of 32 bytes. Raises ValueError without a key."""
        if not key:
            raise ValueError("a dispatch proof needs a key")
        samples = ",".join([f"{each.start}-{each.stop}" for each in self.samples])
        dispatched = f"{self.run_id}/{self.epoch}/{self.shard}/{self.attempt}/{self.rollout}/{samples}"
        return hmac.digest(key.encode(), dispatched.encode(), "sha256")


def as_ranges(samples: Iterable[int]) -> tuple[range, ...]:
    """The numbers as the fewest ranges, ascending."""
    ranges: list[range] = []
    for sample in sorted(samples):
        if ranges and sample <= ranges[-1].stop:
            ranges[-1] = range(ranges[-1].start, max(ranges[-1].stop, sample + 1))
        else:
            ranges.append(range(sample, sample + 1))
    return tuple(ranges)


def prove_dispatch(work: work_messages_pb2.WorkShard, key: str) -> None:
    """Fills the dispatch proof of a complete message with samples."""
    samples = as_ranges(sample.sample for sample in work.samples)
    dispatched = DispatchedShard(work.run_id, work.epoch, work.shard, work.attempt, work.rollout, samples)
    work.dispatch_proof = dispatched.dispatch_proof(key)
    work.dispatched_samples.extend(ranges_to_proto(samples))


def ranges_to_proto(ranges: Iterable[range]) -> Sequence[work_messages_pb2.SampleRange]:
    return [work_messages_pb2.SampleRange(first=each.start, count=len(each)) for each in ranges]


def ranges_from_proto(ranges: Iterable[work_messages_pb2.SampleRange]) -> tuple[range, ...]:
    return tuple([range(each.first, each.first + each.count) for each in ranges])


def is_dispatched(sent: RolloutMessage, key: str) -> bool:
    """Whether the message of a worker proves that the worker was sent its sample."""
    proof, ranges = sent.proof, ranges_from_proto(sent.proof.samples)
    dispatched = DispatchedShard(sent.run_id, sent.epoch, proof.shard, proof.attempt, proof.rollout, ranges)
    is_proved = hmac.compare_digest(proof.dispatch_proof, dispatched.dispatch_proof(key))
    return is_proved and any(sent.sample in samples for samples in ranges)


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
    for given in batch.dispatch_proofs:
        ranges = ranges_from_proto(given.samples)
        dispatched = DispatchedShard(
            batch.run_id, batch.epoch, given.shard, given.attempt, given.rollout, ranges
        )
        # Only then are ranges expanded: a forged one may have any length.
        if hmac.compare_digest(given.dispatch_proof, dispatched.dispatch_proof(key)):
            shard_attempt = (given.shard, given.attempt, given.rollout)
            proved[shard_attempt] = proved.get(shard_attempt, frozenset()).union(*ranges)
    return proved


def progress_proof(payload: bytes, key: str) -> str:
    """HMAC-SHA-256 over the report as it is sent. Raises ValueError without a key."""
    if not key:
        raise ValueError("a progress proof needs a key")
    # The prefix distinguishes this input from that of a dispatch proof, which has the same key.
    return hmac.new(key.encode(), b"progress/" + payload, "sha256").hexdigest()


def is_progress_proved(payload: bytes, proof: str, key: str) -> bool:
    # A header may have any bytes.
    return hmac.compare_digest(proof.encode(errors="replace"), progress_proof(payload, key).encode())
