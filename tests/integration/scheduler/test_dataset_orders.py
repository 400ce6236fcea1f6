"""Runs over data sets in the whole scheduler: real Postgres, NATS, object store and results."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import grpc
import pytest
import pytest_asyncio

from proctor.v1 import dataset_service_pb2 as dataset_pb2
from proctor.v1 import run_pb2, sample_pb2, work_messages_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.values import messaging
from proctor.values.priority import Priority
from services.common.grpc.errors import remote_error
from services.common.nats import streams
from services.common.nats.jetstream import JetStream
from services.common.nats.pull import Puller
from tests.fakes.callers import OPERATOR_METADATA
from tests.fakes.scheduler.served_scheduler import (
    ACK_WAIT_SECONDS,
    MODEL,
    ServedScheduler,
    served_scheduler,
    until,
)
from tests.fakes.storage.checked_files import batch_line, jsonl
from tests.fakes.thorough_cases import first_cases
from tests.reference.golden_reference import folder_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

HIGH = run_pb2.PRIORITY_HIGH
ROWS = [
    {"id": f"r{at}", "prompt": f"{at} + 1 =", "target": str(at + 1), "metadata": {"at": at}}
    for at in range(150)
]
CHAT = batch_line(
    0,
    body={
        "model": "small",
        "messages": [
            {"role": "system", "content": "Add."},
            {"role": "user", "content": [{"type": "text", "text": "1 + 1"}], "name": "ann"},
        ],
        "temperature": 0,
        "stop": ["\n"],
    },
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def entry(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ServedScheduler]:
    async with served_scheduler(tmp_path_factory.mktemp("scheduler")) as stands:
        yield stands


async def ordered(entry: ServedScheduler, dataset_id: str, **order: object) -> str:
    return await entry.submit(**{"suite": "", "dataset_id": dataset_id, "priority": HIGH, **order})


async def refusal(entry: ServedScheduler, dataset_id: str, **order: object) -> str:
    """The reason."""
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await ordered(entry, dataset_id, **order)
    return remote_error(refused.value).reason


async def shards(entry: ServedScheduler, wanted: int) -> list[work_messages_pb2.WorkShard]:
    """Off the wire, as a worker gets them; they go back."""
    consumer = streams.work_consumer("remote", messaging.ANY_MODEL, Priority.HIGH, ACK_WAIT_SECONDS)
    puller = Puller(JetStream(entry.nats), consumer)
    found: list[work_messages_pb2.WorkShard] = []
    held = []
    async with asyncio.timeout(30):
        while len(found) < wanted:
            for message in await puller.fetch(wanted - len(found), 1):
                found.append(work_messages_pb2.WorkShard.FromString(message.data))
                held.append(message)
    for message in held:
        await message.nak()
    await puller.close()
    return found


async def test_rows_reach_the_wire_in_order_and_the_run_ends(entry: ServedScheduler) -> None:
    dataset_id = await entry.upload(jsonl(ROWS))
    entry.worker.asked.clear()
    metrics = [sample_pb2.MetricUse(name="exact_match")]
    run_id = await ordered(entry, dataset_id, model="small", metrics=metrics)
    got = await shards(entry, 3)
    assert {(shard.model, shard.task, shard.use_engine_defaults) for shard in got} == {(MODEL, "rows", True)}
    asked = sorted((sample.sample, sample.prompt.text) for shard in got for sample in shard.samples)
    assert asked == [(at, row["prompt"]) for at, row in enumerate(ROWS)]
    assert not got[0].params.HasField("max_tokens")
    ended = await entry.finish(run_id)
    assert ended.state == run_pb2.RUN_STATE_COMPLETED, ended.error
    assert (ended.progress.recorded, ended.progress.total) == (len(ROWS), len(ROWS))
    assert sorted(entry.worker.asked) == list(range(len(ROWS)))
    assert (ended.order.dataset_id, ended.order.suite, ended.dataset_name) == (dataset_id, "", "rows.jsonl")
    assert (ended.order.model, ended.order.metrics[0].name) == (MODEL, "exact_match")
    assert ended.environment["task.rows.row_source"] == "rows.jsonl"


async def test_an_order_over_more_rows_than_were_asked_is_estimated_by_their_number(
    entry: ServedScheduler,
) -> None:
    dataset_id = await entry.upload(jsonl([{"prompt": f"{at} + 2 ="} for at in range(40)]))
    await entry.finish(await ordered(entry, dataset_id, limit=10))
    estimates = []

    async def has_estimate(limit: int | None) -> bool:
        await entry.worker.send_heartbeat()
        order = run_pb2.RunOrder(dataset_id=dataset_id, model=MODEL, priority=HIGH, limit=limit)
        request = scheduler_pb2.EstimateRunRequest(order=order)
        estimates.append(await entry.stub.EstimateRun(request))
        return estimates[-1].HasField("estimated_seconds")

    # Without a live worker there is none.
    await until(lambda: has_estimate(10))
    for limit in (20, 50, None):
        assert await has_estimate(limit)
        assert estimates[-1].estimated_low_seconds < estimates[-1].estimated_seconds
        assert estimates[-1].estimated_seconds < estimates[-1].estimated_high_seconds
    seconds = [each.estimated_seconds for each in estimates[-4:]]
    assert seconds[1:] == pytest.approx([2 * seconds[0], 4 * seconds[0], 4 * seconds[0]])


async def test_lines_travel_with_their_parameters_and_all_of_their_messages(
    entry: ServedScheduler,
) -> None:
    run_id = await ordered(entry, await entry.upload(jsonl([CHAT])))
    [shard] = await shards(entry, 1)
    [sample] = shard.samples
    assert shard.prompt_form == run_pb2.PROMPT_FORM_CHAT
    assert json.loads(sample.params_json) == {"stop": ["\n"], "temperature": 0}
    system, user = sample.prompt.messages
    assert (system.content, system.fields_json) == ("Add.", "")
    assert (user.role, user.content) == ("user", "1 + 1")
    assert json.loads(user.fields_json) == {"content": [{"type": "text", "text": "1 + 1"}], "name": "ann"}
    assert (await entry.finish(run_id)).state == run_pb2.RUN_STATE_COMPLETED


async def test_real_lines_are_asked_as_they_are(entry: ServedScheduler) -> None:
    content = (folder_of("PROCTOR_DATA_DIR") / "batch/batch_50.jsonl").read_bytes()
    lines = [json.loads(line) for line in content.splitlines()]
    run_id = await ordered(entry, await entry.upload(content), line_models=["test-model"])
    [shard] = await shards(entry, 1)
    assert [_body(sample) for sample in shard.samples] == [
        {name: value for name, value in line["body"].items() if name != "model"} for line in lines
    ]
    assert (await entry.finish(run_id)).state == run_pb2.RUN_STATE_COMPLETED


def _body(sample: work_messages_pb2.WorkSample) -> Mapping[str, object]:
    messages = [{"role": turn.role, "content": turn.content} for turn in sample.prompt.messages]
    return {"messages": messages, **json.loads(sample.params_json or "{}")}


async def test_refused_orders_say_why(entry: ServedScheduler) -> None:
    sound = await entry.upload(jsonl(ROWS))
    other = await entry.upload(jsonl([batch_line(0)]), "other.jsonl")
    metrics = [sample_pb2.MetricUse(name="exact_match")]
    assert await refusal(entry, "ds_" + "0" * 32) == "DATASET_NOT_FOUND"
    assert await refusal(entry, "file-" + "0" * 24) == "DATASET_NOT_FOUND"
    assert await refusal(entry, sound, num_fewshot=2) == "INVALID_PARAMETER"
    assert await refusal(entry, other) == "MODEL_MISMATCH"
    assert await refusal(entry, other, line_models=["m"], metrics=metrics) == "NO_TARGETS"


@first_cases(
    1,
    ("metric", "row", "problem"),
    [
        ("numeric", {"target": "several"}, "numeric: the target 'several' names no number"),
        ("regex", {"target": "a("}, "regex: the target 'a(' is not a regular expression: missing ), "),
        ("choice", {"target": "Paris"}, "choice: the target 'Paris' is none of the choices A, B, "),
        ("exact_match", {}, "exact_match: it has no target."),
    ],
)
async def test_targets_that_do_not_fit_the_metric_fail_the_run_before_anything_is_asked(
    entry: ServedScheduler, metric: str, row: Mapping[str, str], problem: str
) -> None:
    fitting = {"target": "7"} if metric == "numeric" else {"target": "B"}
    # A row behind the limit, so that an order cannot tell where it is that the target lacks.
    rows = [{"id": f"r{at}", "prompt": f"{at}?", **(row if at == 1500 else fitting)} for at in range(1700)]
    dataset_id = await entry.upload(jsonl(rows), f"{metric}.jsonl")
    entry.worker.asked.clear()
    metrics = [sample_pb2.MetricUse(name=metric)]
    failed = await entry.watched(await ordered(entry, dataset_id, metrics=metrics, limit=1600))
    assert failed.state == run_pb2.RUN_STATE_FAILED
    assert failed.error.reason == "NO_TARGETS", failed.error
    assert f"Row 1500 (from 0; r1500) does not fit {problem}" in failed.error.message
    assert entry.worker.asked == []
    sound = await ordered(entry, dataset_id, metrics=metrics, limit=1500)
    assert (await entry.finish(sound)).state == run_pb2.RUN_STATE_COMPLETED


async def test_data_set_that_a_run_waits_for_cannot_be_deleted_before_it_ends(
    entry: ServedScheduler,
) -> None:
    dataset_id = await entry.upload(jsonl(ROWS[:5]), "held.jsonl")
    run_id = await ordered(entry, dataset_id)
    request = dataset_pb2.DeleteDatasetRequest(dataset_id=dataset_id)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await entry.datasets.DeleteDataset(request, metadata=OPERATOR_METADATA)
    assert remote_error(refused.value).reason == "DATASET_IN_USE"
    await entry.finish(run_id)
    await entry.datasets.DeleteDataset(request, metadata=OPERATOR_METADATA)
    assert await refusal(entry, dataset_id) == "DATASET_NOT_FOUND"


async def test_orders_and_deletions_at_once_leave_no_run_without_its_data_set(
    entry: ServedScheduler,
) -> None:
    for attempt in range(5):
        dataset_id = await entry.upload(jsonl(ROWS[:2]), f"raced-{attempt}.jsonl")
        request = dataset_pb2.DeleteDatasetRequest(dataset_id=dataset_id)
        order, deletion = await asyncio.gather(
            ordered(entry, dataset_id),
            entry.datasets.DeleteDataset(request, metadata=OPERATOR_METADATA),
            return_exceptions=True,
        )
        assert isinstance(order, BaseException) is not isinstance(deletion, BaseException)
        if isinstance(order, str):
            assert (await entry.finish(order)).state == run_pb2.RUN_STATE_COMPLETED


async def test_object_store_that_loses_its_folder_for_a_while_delays_the_run_only(
    entry: ServedScheduler,
) -> None:
    dataset_id = await entry.upload(jsonl(ROWS), "away.jsonl")
    objects = Path(entry.settings.object_store.removeprefix("file://"))
    hidden = objects.with_name("hidden")
    objects.rename(hidden)
    run_id = await ordered(entry, dataset_id)

    async def is_planning() -> bool:
        return (await entry.run(run_id)).progress.phase == "planning rows"

    await until(is_planning)
    hidden.rename(objects)
    assert (await entry.finish(run_id)).state == run_pb2.RUN_STATE_COMPLETED


async def test_cancelled_run_is_retried_over_the_rows_that_are_missing(entry: ServedScheduler) -> None:
    run_id = await ordered(entry, await entry.upload(jsonl(ROWS), "retried.jsonl"))

    async def is_asked() -> bool:
        return await entry.worker.answer(1) > 0

    async def has_answers() -> bool:
        return (await entry.run(run_id)).progress.recorded > 0

    await until(is_asked)
    await until(has_answers)
    await entry.stub.CancelRun(scheduler_pb2.CancelRunRequest(run_id=run_id))
    await entry.watched(run_id)
    entry.worker.asked.clear()
    await entry.stub.RetryRun(scheduler_pb2.RetryRunRequest(run_id=run_id), metadata=OPERATOR_METADATA)
    ended = await entry.finish(run_id)
    assert (ended.state, ended.progress.recorded) == (run_pb2.RUN_STATE_COMPLETED, len(ROWS))
    assert 0 < len(entry.worker.asked) < len(ROWS)
