"""Shards in the random order that two runs share."""

from collections import Counter

from proctor.values.comparison import sample_order
from proctor.values.scoring import OutputType
from services.scheduler.planning.random_order import shards_in_order
from services.scheduler.planning.shard import MissingSample
from services.scheduler.runs.lifecycle.run import PlannedTask

SEED = 11


def task_of(name: str, first: int, count: int) -> PlannedTask:
    return PlannedTask(
        task=name,
        version="1",
        first_sample=first,
        sample_count=count,
        output_type=OutputType.GENERATE_UNTIL,
        row_source="",
        row_source_revision="",
    )


TASKS = [task_of("a", 0, 300), task_of("b", 300, 700)]


def missing_of(samples: range, rollouts: int = 1) -> list[MissingSample]:
    return [MissingSample(sample, rollout) for rollout in range(rollouts) for sample in samples]


def test_every_missing_sample_is_in_one_shard_of_its_task() -> None:
    shards = list(shards_in_order(missing_of(range(1000), 2), TASKS, SEED, 5))
    assert [shard.number for shard in shards] == list(range(5, 5 + len(shards)))
    asked = Counter((sample, shard.rollout) for shard in shards for sample in shard.samples)
    assert asked == dict.fromkeys(((sample, rollout) for sample in range(1000) for rollout in (0, 1)), 1)
    for shard in shards:
        assert all(sample in TASKS[shard.task_index].samples for sample in shard.samples)
        assert shard.size == len(shard.samples) <= 64


def test_a_beginning_of_the_shards_is_a_beginning_of_the_order_in_all_rollouts() -> None:
    order = sample_order(SEED, 1000)
    shards = list(shards_in_order(missing_of(range(1000), 2), TASKS, SEED, 0))
    asked: set[tuple[int, int]] = set()
    ends = []
    for shard in shards:
        asked |= {(sample, shard.rollout) for sample in shard.samples}
        count = len(asked) // 2
        if asked == {(sample, rollout) for sample in order[:count] for rollout in (0, 1)}:
            ends.append(count)
    assert ends == [*range(128, 1000, 128), 1000]


def test_what_is_missing_after_a_retry_keeps_the_order() -> None:
    places = {sample: place for place, sample in enumerate(sample_order(SEED, 1000))}
    shards = list(shards_in_order(missing_of(range(400, 700)), TASKS, SEED, 0))
    blocks = [{places[sample] // 128 for sample in shard.samples} for shard in shards]
    assert all(len(block) == 1 for block in blocks)
    assert blocks == sorted(blocks, key=min)
