"""How samples become shards."""

from dataclasses import replace

from proctor.values.scoring import OutputType
from services.scheduler.planning.shard import (
    MAX_SHARD_BYTES,
    MissingSample,
    ShardCutter,
    most_samples,
    number_shards,
    shards_of_missing,
)
from services.scheduler.runs.lifecycle.run import PlannedTask


def cut(sizes: list[int], first_sample: int = 0) -> list[range]:
    cutter = ShardCutter(first_sample)
    # In two chunks: what is cut does not depend on them.
    cutter.add(sizes[: len(sizes) // 2])
    cutter.add(sizes[len(sizes) // 2 :])
    return cutter.finish()


def test_rollouts_are_a_shard_each() -> None:
    cutter = ShardCutter(4, most_samples(replace(planned("a", 4, 3), is_of_rollouts=True)))
    cutter.add([10] * 3)
    assert cutter.finish() == [range(4, 5), range(5, 6), range(6, 7)]


def planned(name: str, first_sample: int, sample_count: int) -> PlannedTask:
    return PlannedTask(
        task=name,
        version="1",
        sample_set_id="set",
        first_sample=first_sample,
        sample_count=sample_count,
        output_type=OutputType.MULTIPLE_CHOICE,
        num_fewshot=0,
        is_stand_in=False,
        row_source="rows",
        row_source_revision="1",
    )


def test_shard_is_cut_at_64_samples() -> None:
    assert cut([10] * 130, first_sample=7) == [range(7, 71), range(71, 135), range(135, 137)]


def test_shard_is_cut_before_it_gets_too_heavy() -> None:
    half = MAX_SHARD_BYTES // 2
    assert cut([half, half, 1, half]) == [range(2), range(2, 4)]


def test_sample_heavier_than_a_shard_has_one_of_its_own() -> None:
    assert cut([1, 2 * MAX_SHARD_BYTES, 1]) == [range(1), range(1, 2), range(2, 3)]


def test_no_samples_make_no_shard() -> None:
    assert cut([]) == []


def test_numbers_go_through_all_tasks_before_the_next_rollout() -> None:
    shards = list(number_shards([[range(2), range(2, 3)], [range(3, 4)]], rollouts=2))
    assert [(shard.number, shard.rollout, shard.task_index) for shard in shards] == [
        (0, 0, 0),
        (1, 0, 0),
        (2, 0, 1),
        (3, 1, 0),
        (4, 1, 0),
        (5, 1, 1),
    ]
    assert [shard.size for shard in shards[:3]] == [2, 1, 1]


def test_rows_have_shards_as_often_as_they_are_asked() -> None:
    ranges = [[range(1), range(1, 2), range(2, 3)]]
    shards = list(number_shards(ranges, rollouts=2, row_rollouts=(2, 0, 1)))
    assert [(shard.number, shard.rollout, list(shard.samples)) for shard in shards] == [
        (0, 0, [0]),
        (1, 0, [2]),
        (2, 1, [0]),
    ]


def test_shards_of_what_is_missing_keep_to_one_task_and_one_rollout() -> None:
    tasks = [planned("a", 0, 100), planned("b", 100, 100)]
    missing = [MissingSample(sample, 0) for sample in (3, 99, 100, 150)] + [MissingSample(150, 1)]
    shards = list(shards_of_missing(missing, tasks, first_number=9))
    assert [(shard.number, shard.task_index, shard.rollout, list(shard.samples)) for shard in shards] == [
        (9, 0, 0, [3, 99]),
        (10, 1, 0, [100, 150]),
        (11, 1, 1, [150]),
    ]


def test_shards_of_what_is_missing_are_cut_at_64_samples() -> None:
    tasks = [planned("a", 0, 1000)]
    shards = list(shards_of_missing([MissingSample(sample, 0) for sample in range(130)], tasks, 0))
    assert [shard.size for shard in shards] == [64, 64, 2]


def test_missing_rollouts_are_a_shard_each() -> None:
    missing = [MissingSample(sample, rollout) for rollout in range(2) for sample in (3, 4)]
    shards = list(shards_of_missing(missing, [replace(planned("a", 0, 10), is_of_rollouts=True)], 7))
    assert [(shard.number, shard.rollout, list(shard.samples)) for shard in shards] == [
        (7, 0, [3]),
        (8, 0, [4]),
        (9, 1, [3]),
        (10, 1, [4]),
    ]
