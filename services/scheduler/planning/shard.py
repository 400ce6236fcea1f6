"""Shards: a few samples of one task and rollout, sent to a worker as one message."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from proctor.values.sample import MAX_SHARD_SAMPLES, SHARD_SAMPLES
from services.scheduler.runs.lifecycle.run import PlannedTask
from services.scheduler.runs.orders.run_order import RunOrder

# Heavy samples make smaller shards, far below the 1 MiB that a NATS message may have by default.
MAX_SHARD_BYTES = 256 * 1024
# Samples of a task with a middle, in which shards may grow, and those before it. A quarter is behind it.
_LARGE_TASK_SAMPLES = 4096
_FIRST_SAMPLES = 1024


@dataclass(frozen=True, slots=True)
class Shard:
    """`samples` are run-global numbers still to be asked; `size` counts those it was cut with.

    `size` never changes: results counts a shard's outcomes over all of its attempts.
    """

    number: int
    task_index: int
    rollout: int
    samples: Sequence[int]
    size: int
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class FilledShard:
    """A shard with its samples, as it goes out: one message, or several where the samples are heavy."""

    shard: Shard
    payloads: Sequence[bytes]

    @property
    def size_bytes(self) -> int:
        return sum(map(len, self.payloads))


def most_samples(task: PlannedTask) -> int:
    """The most samples that a shard is cut with, and has unless it grows.

    A rollout takes minutes: each is one, so none begins anew with another.
    """
    return 1 if task.is_of_rollouts else SHARD_SAMPLES


def may_grow(task: PlannedTask, order: RunOrder, concurrency: int) -> bool:
    """Whether shards of the run's task may have up to MAX_SHARD_SAMPLES; `concurrency` is that of its pool.

    A limit of cost and a decision between two runs are kept as closely as shards are small. A worker that
    asks few samples at a time is at a shard for long: meanwhile what is more urgent waits, and all of it may
    be asked again if the worker dies. Of a fast one in a large task that is little.
    """
    is_limited = order.max_cost is not None or order.until_decided is not None
    return concurrency >= SHARD_SAMPLES and not is_limited and not task.is_of_rollouts


@dataclass(slots=True)
class ShardCutter:
    """Takes the sizes of a task's samples in order and keeps the ranges; holds no sample.

    A shard costs about as much for many samples as for few, so where it `may_grow` those in the middle of a
    large task are joined. The first stay small, so that figures come early, and so do those of the last
    quarter: many workers end about together then. A small task is spread well only by small shards.
    """

    first_sample: int
    max_samples: int = SHARD_SAMPLES
    may_grow: bool = False
    _ranges: list[range] = field(init=False, default_factory=list)
    _weights: list[int] = field(init=False, default_factory=list)
    _start: int = field(init=False)
    _next: int = field(init=False)
    _bytes: int = 0

    def __post_init__(self) -> None:
        self._start = self._next = self.first_sample

    def add(self, sizes: Iterable[int]) -> None:
        """Bytes of the next samples."""
        start, number, weight = self._start, self._next, self._bytes
        for size_bytes in sizes:
            is_full = number - start == self.max_samples
            # A sample that is heavier than a shard travels alone.
            if is_full or (number > start and weight + size_bytes > MAX_SHARD_BYTES):
                self._ranges.append(range(start, number))
                self._weights.append(weight)
                start, weight = number, 0
            number += 1
            weight += size_bytes
        self._start, self._next, self._bytes = start, number, weight

    def finish(self) -> list[range]:
        if self._next > self._start:
            self._ranges.append(range(self._start, self._next))
            self._weights.append(self._bytes)
            self._start, self._bytes = self._next, 0
        count = self._next - self.first_sample
        if not self.may_grow or count < _LARGE_TASK_SAMPLES:
            return self._ranges
        return self._joined(range(self.first_sample + _FIRST_SAMPLES, self._next - count // 4))

    def _joined(self, middle: range) -> list[range]:
        """The ranges, where those that are wholly in the middle are joined as far as the limits allow."""
        joined: list[range] = []
        last, last_bytes = range(0), 0
        for samples, size_bytes in zip(self._ranges, self._weights, strict=True):
            is_within = last.start >= middle.start and samples.stop <= middle.stop
            fits = (
                len(last) + len(samples) <= MAX_SHARD_SAMPLES and last_bytes + size_bytes <= MAX_SHARD_BYTES
            )
            if joined and is_within and fits:
                last, last_bytes = range(last.start, samples.stop), last_bytes + size_bytes
                joined[-1] = last
            else:
                last, last_bytes = samples, size_bytes
                joined.append(last)
        return joined


def number_shards(
    ranges_of_tasks: Sequence[Sequence[range]], rollouts: int, row_rollouts: Sequence[int] = ()
) -> Iterator[Shard]:
    """Shards of a new run: rollout by rollout, so that a first figure over all samples comes early.

    `row_rollouts`: the rollouts of each sample, whose shards are of one sample then.
    """
    number = 0
    for rollout in range(rollouts):
        for task_index, ranges in enumerate(ranges_of_tasks):
            for samples in ranges:
                if row_rollouts and rollout >= row_rollouts[samples.start]:
                    continue
                yield Shard(number, task_index, rollout, samples, len(samples))
                number += 1


@dataclass(frozen=True, slots=True)
class MissingSample:
    sample: int
    rollout: int


def shards_of_missing(
    missing: Iterable[MissingSample], tasks: Sequence[PlannedTask], first_number: int
) -> Iterator[Shard]:
    """Shards out of what is missing, which comes in the order of rollout and sample."""
    number = first_number
    held: list[MissingSample] = []
    for item in missing:
        if held and not _fits(item, held, tasks):
            yield _shard_of(held, tasks, number)
            number += 1
            held = []
        held.append(item)
    if held:
        yield _shard_of(held, tasks, number)


def task_index_of(sample: int, tasks: Sequence[PlannedTask]) -> int:
    """The task whose range of numbers holds the sample."""
    for index, task in enumerate(tasks):
        if task.first_sample <= sample < task.first_sample + task.sample_count:
            return index
    raise ValueError(f"sample {sample} belongs to no task of the run")


def _fits(item: MissingSample, held: Sequence[MissingSample], tasks: Sequence[PlannedTask]) -> bool:
    # Weights are not stored; a shard that is too heavy goes out as several messages.
    index = task_index_of(item.sample, tasks)
    if held[0].rollout != item.rollout or task_index_of(held[0].sample, tasks) != index:
        return False
    return len(held) < most_samples(tasks[index])


def _shard_of(held: Sequence[MissingSample], tasks: Sequence[PlannedTask], number: int) -> Shard:
    samples = [item.sample for item in held]
    return Shard(number, task_index_of(samples[0], tasks), held[0].rollout, samples, len(samples))
