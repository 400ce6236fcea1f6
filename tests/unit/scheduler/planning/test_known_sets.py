"""A run of the same rows sends none of its samples again; one of other rows sends all of its own."""

from dataclasses import replace
from typing import Any

import pytest

from proctor.values.names.project import FIRST_DECLARED
from proctor.values.sample import Prompt
from services.common.errors import ErrorKind, RemoteError
from services.scheduler.planning.known_sets import ContentHash, KnownSet, KnownSets
from services.scheduler.planning.ports import CommittedSet
from services.scheduler.suites.rendering.sample import RenderedSample
from tests.fakes.scheduler.scheduler_harness import SchedulerHarness, toy_order
from tests.fakes.scheduler.surroundings import InMemoryRecord

OF_TOYS = ("choose", "say")
SAMPLE = RenderedSample(0, 1, b"d" * 32, Prompt("p"), cluster="passage", row_id="row", doc_json='{"a": 1}')


async def planned_sets(harness: SchedulerHarness, project_id: int = 1) -> list[str]:
    run, _ = await harness.start(toy_order(tasks=OF_TOYS, project_id=project_id))
    await harness.tools.planner.plan(harness.fencing_token, run)
    return [task.sample_set_id for task in await harness.runs.planned_tasks(run.run_id)]


async def test_second_run_of_the_same_rows_sends_no_sample() -> None:
    harness = SchedulerHarness()
    first = await planned_sets(harness)
    harness.record.refusal = RemoteError(ErrorKind.INTERNAL, "INTERNAL", "Nothing is put.", {})
    assert await planned_sets(harness) == first


async def test_other_rows_under_the_same_name_are_sent() -> None:
    harness = SchedulerHarness()
    first = await planned_sets(harness)
    harness.rows.count = 7
    second = await planned_sets(harness)
    assert not {*first} & {*second}
    assert [len(harness.record.sets[each]) for each in second] == [7] * len(OF_TOYS)


async def test_set_that_results_has_no_more_is_sent_again() -> None:
    harness = SchedulerHarness()
    first = await planned_sets(harness)
    harness.record.sets.clear()
    assert await planned_sets(harness) == first
    assert {*harness.record.sets} == {*first}


async def test_results_that_is_away_for_the_known_set_is_no_reason_to_send_it() -> None:
    class Away(InMemoryRecord):
        is_away = False

        async def commit_sample_set(
            self, staging_id: str, sample_count: int, project_id: int, content_hash: bytes
        ) -> CommittedSet:
            if self.is_away:
                raise RemoteError(ErrorKind.UNAVAILABLE, "UNAVAILABLE", "It is away.", {})
            return await super().commit_sample_set(staging_id, sample_count, project_id, content_hash)

    record = Away()
    harness = SchedulerHarness(record=record)
    await planned_sets(harness)
    record.is_away = True
    with pytest.raises(RemoteError) as refused:
        await planned_sets(harness)
    assert refused.value.reason == "UNAVAILABLE"
    assert not record.staged


async def test_projects_that_are_not_declared_share_their_sets() -> None:
    harness = SchedulerHarness()
    first = await planned_sets(harness, project_id=1)
    harness.record.refusal = RemoteError(ErrorKind.INTERNAL, "INTERNAL", "Nothing is put.", {})
    assert await planned_sets(harness, project_id=2) == first


async def test_declared_project_sends_its_own_samples() -> None:
    harness = SchedulerHarness()
    await planned_sets(harness, project_id=1)
    harness.record.refusal = RemoteError(ErrorKind.INTERNAL, "INTERNAL", "Nothing is put.", {})
    with pytest.raises(RemoteError):
        await planned_sets(harness, project_id=FIRST_DECLARED)


def hash_of(*samples: RenderedSample) -> bytes:
    content = ContentHash()
    for sample in samples:
        content.add([sample])
    return content.digest()


@pytest.mark.parametrize(
    "change",
    [
        {"digest": b"e" * 32},
        {"doc_id": 2},
        {"doc_json": '{"a": 2}'},
        {"cluster": "passages"},
        {"row_id": "rows"},
        {"cluster": "passag", "row_id": "erow"},
    ],
    ids=str,
)
def test_all_that_is_stored_of_a_sample_decides(change: dict[str, Any]) -> None:
    assert hash_of(SAMPLE) == hash_of(replace(SAMPLE))
    assert hash_of(SAMPLE) != hash_of(replace(SAMPLE, **change))


def test_order_of_samples_decides() -> None:
    other = replace(SAMPLE, doc_id=2)
    assert hash_of(SAMPLE, other) != hash_of(other, SAMPLE)


def test_chunks_of_samples_do_not_decide() -> None:
    samples = [replace(SAMPLE, doc_id=number) for number in range(3)]
    content = ContentHash()
    content.add(samples)
    assert content.digest() == hash_of(*samples)


def test_only_the_latest_sets_are_remembered() -> None:
    known = KnownSets(maximum=2)
    for name in ("a", "b", "a", "c"):
        known.remember(name, KnownSet(CommittedSet(name, b""), b""))
    assert [known.likely(name) is not None for name in ("a", "b", "c")] == [True, False, True]
