"""Planning a run over a data set: its rows become samples of one task, and what stops that."""

from dataclasses import dataclass, replace

import pytest

from proctor.values.generation import GenerationParams
from proctor.values.run import RunState
from proctor.values.scoring import MetricUse, OutputType, TaskScoring
from proctor.wire.values import SAMPLE
from services.common.errors import ObjectStoreUnavailable
from services.scheduler.planning.grpc_results import facts_to_proto, request_digest, task_to_proto
from services.scheduler.planning.ports import TaskToOpen
from services.scheduler.runs.lifecycle.run import PlannedTask, Run
from services.scheduler.suites.rendering.sample import RenderedSample
from services.scheduler.uploads.errors import DatasetNotFound
from tests.fakes.callers import OPERATOR
from tests.fakes.scheduler.scheduler_harness import SchedulerHarness, ready_worker, toy_order
from tests.fakes.storage.checked_files import batch_line
from tests.fakes.storage.memory_objects import MemoryObjects
from tests.fakes.storage.uploaded_contents import UploadedContents

ROWS = [{"id": f"r{at}", "prompt": f"{at} + 1 =", "target": str(at + 1)} for at in range(2500)]


async def planned(harness: SchedulerHarness, **changes: object) -> Run:
    run, _ = await harness.start(toy_order(suite="", **changes))
    await harness.tools.planner.plan(harness.fencing_token, run)
    return await harness.runs.get(run.run_id)


async def samples_of(harness: SchedulerHarness, run: Run) -> list[RenderedSample]:
    [task] = await harness.runs.planned_tasks(run.run_id)
    return harness.record.sets[task.sample_set_id]


async def test_rows_are_samples_of_one_task_in_their_order() -> None:
    harness = SchedulerHarness()
    dataset_id = harness.datasets.upload(ROWS, "sums.jsonl")
    run = await planned(harness, dataset_id=dataset_id)
    [task] = await harness.runs.planned_tasks(run.run_id)
    digest = harness.datasets.contents[dataset_id].content.digest
    assert (task.task, task.version, task.sample_count) == ("rows", "1", 2500)
    assert (task.row_source, task.row_source_revision) == ("sums.jsonl", digest)
    assert (task.num_fewshot, task.generation, task.is_stand_in) == (0, None, False)
    samples = await samples_of(harness, run)
    assert [sample.row_id for sample in samples] == [row["id"] for row in ROWS]
    assert [sample.position for sample in samples] == list(range(2500))
    shards = await harness.runs.planned(run, -1, 100)
    assert [shard.size for shard in shards] == [64] * 39 + [4]
    assert run.environment["task.rows.row_source_revision"] == digest
    assert run.environment["task.rows.row_source"] == "sums.jsonl"


async def test_limit_takes_the_first_rows_and_rollouts_repeat_them() -> None:
    harness = SchedulerHarness()
    run = await planned(harness, dataset_id=harness.datasets.upload(ROWS), limit=70, rollouts=2)
    assert run.total == 140
    assert [sample.row_id for sample in await samples_of(harness, run)] == [f"r{at}" for at in range(70)]


async def test_run_ends_when_all_rows_are_answered_and_a_retry_asks_what_is_missing() -> None:
    harness = SchedulerHarness()
    dataset_id = harness.datasets.upload(ROWS[:100])
    run, driver = await harness.start(toy_order(suite="", dataset_id=dataset_id))
    failed = await harness.finish(run.run_id, driver, lambda sample: "engine" if sample < 50 else "")
    assert failed.state is RunState.FAILED
    # The rows are with results: a retry needs the data set no more.
    harness.datasets.contents.clear()
    harness.datasets.objects.contents.clear()
    harness.asked.clear()
    await harness.changing.retry(run.run_id, OPERATOR)
    await harness.admit()
    ended = await harness.finish(run.run_id, harness.driver(run.run_id))
    assert ended.state is RunState.COMPLETED
    assert sorted(harness.asked) == list(range(50))


async def test_paused_run_goes_on_where_it_stopped() -> None:
    harness = SchedulerHarness()
    run, driver = await harness.start(toy_order(suite="", dataset_id=harness.datasets.upload(ROWS[:100])))
    await harness.advance(driver, 2)
    await harness.changing.pause(run.run_id, OPERATOR)
    assert await harness.advance(driver)
    await harness.changing.resume(run.run_id, OPERATOR)
    await harness.admit()
    assert (await harness.finish(run.run_id, harness.driver(run.run_id))).state is RunState.COMPLETED
    assert sorted(harness.asked) == list(range(100))


async def test_answers_to_the_same_rows_are_taken_from_an_earlier_run() -> None:
    harness = SchedulerHarness()
    harness.registry.live = [ready_worker(environment={"engine": "fake 1"})]
    dataset_id = harness.datasets.upload(ROWS[:100])
    first, driver = await harness.start(toy_order(suite="", dataset_id=dataset_id))
    await harness.finish(first.run_id, driver)
    again = await planned(harness, dataset_id=harness.datasets.upload(ROWS[:100]), reuse_answers=True)
    assert again.reused_answers == 100


@dataclass
class FailingObjects(MemoryObjects):
    """An object store that cannot be reached so many times."""

    failures: int = 0

    def get_range(self, key: str, start: int, length: int) -> bytes:
        if self.failures:
            self.failures -= 1
            raise ObjectStoreUnavailable(problem="no route")
        return super().get_range(key, start, length)


async def test_object_store_that_is_away_for_a_while_delays_the_run_only() -> None:
    objects = FailingObjects()
    harness = SchedulerHarness(datasets=UploadedContents(objects))
    run, driver = await harness.start(toy_order(suite="", dataset_id=harness.datasets.upload(ROWS[:100])))
    objects.failures = 15
    for _ in range(15):
        with pytest.raises(ObjectStoreUnavailable):
            await harness.advance(driver)
    assert (await harness.finish(run.run_id, driver)).state is RunState.COMPLETED
    assert sorted(harness.asked) == list(range(100))


async def test_row_that_fits_no_message_fails_the_run_by_its_name() -> None:
    text = "x" * 2_200_000
    heavy = {"id": "big", "messages": [{"role": "user", "content": [{"type": "text", "text": text}]}]}
    harness = SchedulerHarness()
    dataset_id = harness.datasets.upload([{"id": "r", "prompt": "a"}, heavy])
    run, driver = await harness.start(toy_order(suite="", dataset_id=dataset_id))
    failed = await harness.finish(run.run_id, driver)
    assert failed.error is not None
    assert failed.error.reason == "SAMPLE_TOO_LARGE"
    assert "Row 1 (from 0) of rows.jsonl (big) takes 440" in failed.error.message


async def test_data_set_that_is_gone_fails_a_run_that_was_not_planned_yet() -> None:
    harness = SchedulerHarness()
    run, driver = await harness.start(toy_order(suite="", dataset_id=harness.datasets.upload(ROWS[:10])))
    harness.datasets.contents.clear()
    failed = await harness.finish(run.run_id, driver)
    assert failed.error is not None
    assert failed.error.reason == DatasetNotFound.reason


async def test_results_is_reported_of_rows_parameters_and_metrics() -> None:
    harness = SchedulerHarness()
    body = {"messages": [{"role": "user", "content": "Hi", "name": "ann"}], "temperature": 0.5}
    plain = {"id": "a", "prompt": "x", "target": "y", "metadata": {"level": 1}}
    run = await planned(
        harness, dataset_id=harness.datasets.upload([plain]), metrics=(MetricUse("exact_match"),)
    )
    [sample] = [SAMPLE.to_proto(each) for each in await samples_of(harness, run)]
    assert (sample.row_id, sample.prompt.text, list(sample.target.texts)) == ("a", "x", ["y"])
    assert sample.doc_json == '{"level":1}'
    batch = await planned(harness, dataset_id=harness.datasets.upload([batch_line(body=body)], "b.jsonl"))
    [sample] = [SAMPLE.to_proto(each) for each in await samples_of(harness, batch)]
    assert not sample.prompt.HasField("text")
    [turn] = sample.prompt.messages
    assert (turn.role, turn.content, turn.fields_json) == ("user", "Hi", '{"name":"ann"}')
    assert (sample.row_id, sample.params_json) == ("r0", '{"temperature":0.5}')
    facts = facts_to_proto(batch, [])
    assert (facts.benchmark, facts.dataset_name) == (batch.order.dataset_id, "b.jsonl")


TEXT = PlannedTask(
    task="rows",
    version="1",
    sample_set_id="set",
    sample_count=1,
    output_type=OutputType.GENERATE_UNTIL,
    row_source="",
    row_source_revision="",
)


async def test_nothing_is_made_up_of_parameters_that_neither_row_nor_run_sets() -> None:
    harness = SchedulerHarness()
    run = await planned(harness, dataset_id=harness.datasets.upload(ROWS[:1]))
    reported = task_to_proto(TaskToOpen(TEXT, TaskScoring(OutputType.GENERATE_UNTIL, ())), run)
    assert (reported.max_tokens, reported.HasField("temperature"), list(reported.stop)) == (0, False, [])
    params = GenerationParams(max_tokens=9, temperature=0.5)
    ordered = replace(run, order=replace(run.order, params=params))
    reported = task_to_proto(TaskToOpen(TEXT, TaskScoring(OutputType.GENERATE_UNTIL, ())), ordered)
    assert (reported.max_tokens, reported.temperature) == (9, 0.5)


async def test_request_of_a_row_is_another_than_that_of_a_suites_sample() -> None:
    harness = SchedulerHarness()
    run = await planned(harness, dataset_id=harness.datasets.upload(ROWS[:1]))
    of_suite = replace(run, order=replace(run.order, suite="toy", dataset_id=""))
    warm = replace(run, order=replace(run.order, params=GenerationParams(temperature=1.0)))
    limited = replace(run, order=replace(run.order, limit=1, metrics=(MetricUse("f1"),), rollouts=3))
    digest = request_digest(run, TEXT)
    assert digest not in (request_digest(of_suite, TEXT), request_digest(warm, TEXT))
    assert digest == request_digest(limited, TEXT)
