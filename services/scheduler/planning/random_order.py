"""Shards of a run until decided: its samples in the random order that it shares with the other run."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from proctor.values.comparison import sample_order
from proctor.values.sample import SHARD_SAMPLES
from services.scheduler.planning.shard import MissingSample, Shard, most_samples, task_index_of
from services.scheduler.runs.lifecycle.run import PlannedTask

# A shard has samples of one task. So many tasks of a suite share a block of the order at most.
_TASKS_OF_BLOCK = 8


def shards_in_order(
    missing: Sequence[MissingSample], tasks: Sequence[PlannedTask], seed: int, first_number: int
) -> Iterator[Shard]:
    """Shards of what is missing: block after block of the order, in each rollout by rollout and task by task.

    The samples of a block are a random part of all of them, whatever is missing.
    """
    block = SHARD_SAMPLES * min(len(tasks), _TASKS_OF_BLOCK)
    places = {sample: place for place, sample in enumerate(sample_order(seed, _count(tasks)))}

    def shard_of(item: MissingSample) -> tuple[int, int, int]:
        return places[item.sample] // block, item.rollout, task_index_of(item.sample, tasks)

    number = first_number
    ordered = sorted(missing, key=lambda item: (*shard_of(item), item.sample))
    for (_, rollout, task_index), items in groupby(ordered, key=shard_of):
        samples, most = [item.sample for item in items], most_samples(tasks[task_index])
        for start in range(0, len(samples), most):
            part = samples[start : start + most]
            yield Shard(number, task_index, rollout, part, len(part))
            number += 1


def _count(tasks: Sequence[PlannedTask]) -> int:
    return max((task.first_sample + task.sample_count for task in tasks), default=0)
