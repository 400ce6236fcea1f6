"""The file of a finished run, gone on with at any byte: by results alone, and by curl through the gateway."""

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
import pytest_asyncio

from proctor.v1 import export_service_pb2 as export_pb2
from proctor.v1 import run_pb2
from proctor.v1 import run_record_service_pb2 as run_record_pb2
from proctor.values.sample import Prompt
from services.results.export import export_run
from services.results.runs.run_plan import RunFacts, RunPlan
from services.results.samples.sample import StoredSample
from tests.fakes.eventually import eventually
from tests.fakes.gateway.gateway_harness import gateway_harness
from tests.fakes.results.recorded_run import answered, batch, choice_sample, failed, plan_of
from tests.fakes.results.results_harness import ResultsHarness, results_harness
from tests.fakes.thorough_cases import first_cases
from tests.harness.processes import bound, output_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

SIZES = (1500, 900)
ROLLOUTS = 2
FORMATS = (export_pb2.EXPORT_FORMAT_JSONL, export_pb2.EXPORT_FORMAT_CSV)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness() -> AsyncIterator[ResultsHarness]:
    async with results_harness() as made:
        yield made


@pytest.fixture(autouse=True)
def marks_stand_close(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_run, "POINT_BYTES", 20_000)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plan(harness: ResultsHarness) -> RunPlan:
    """Two tasks of two rollouts, some of which failed; closed."""
    sets = [await harness.store([asked(at, task) for at in range(size)]) for task, size in enumerate(SIZES)]
    plan = await harness.open(
        replace(plan_of(SIZES, sets, rollouts=ROLLOUTS), facts=RunFacts("s", model="p/m"))
    )
    for rollout in range(ROLLOUTS):
        for start in range(0, sum(SIZES), 400):
            numbers = range(start, min(start + 400, sum(SIZES)))
            outcomes = [
                failed(at, rollout=rollout) if at % 7 == 0 else answered(at, at % 2, rollout=rollout)
                for at in numbers
            ]
            await harness.send(batch(plan.run_id, outcomes))

    async def all_recorded() -> bool:
        return await harness.recorded(plan.run_id) == ROLLOUTS * sum(SIZES)

    await eventually(all_recorded, "everything is recorded")
    await close(harness, plan)
    return plan


def asked(at: int, task: int) -> StoredSample:
    return replace(choice_sample(at, str(task)), prompt=Prompt(f"{at} ünd {'x' * (at % 90)}\n is"))


async def close(harness: ResultsHarness, plan: RunPlan, epoch: int = 1) -> None:
    await harness.records.CloseRun(
        run_record_pb2.CloseRunRequest(
            run_id=plan.run_id, epoch=epoch, state=run_pb2.RUN_STATE_COMPLETED, allow_partial=True
        )
    )


async def sent(
    harness: ResultsHarness, plan: RunPlan, **asked: object
) -> tuple[export_pb2.ExportRunResponse, bytes]:
    """The first piece, and the bytes of all."""
    request = export_pb2.ExportRunRequest(run_id=plan.run_id, format=export_pb2.EXPORT_FORMAT_JSONL)
    for name, value in asked.items():
        setattr(request, name, value)
    pieces = [piece async for piece in harness.exports.ExportRun(request)]
    return pieces[0], b"".join(piece.content for piece in pieces)


async def points_of(harness: ResultsHarness, plan: RunPlan) -> list[tuple[str, int, bool]]:
    async with harness.database() as database:
        rows = await database.fetch(
            "SELECT tag, first_byte, is_end FROM resume_points WHERE run_id = $1 ORDER BY 1, 2", plan.run_id
        )
    return [(row["tag"], row["first_byte"], row["is_end"]) for row in rows]


@first_cases(1, "form", FORMATS)
async def test_what_comes_after_some_bytes_is_the_rest_of_the_file(
    harness: ResultsHarness, plan: RunPlan, form: int
) -> None:
    # Measured before it was ever sent, then made whole, then begun at points and between them.
    head, rest = await sent(harness, plan, format=form, first_byte=70_000)
    whole_head, whole = await sent(harness, plan, format=form)
    assert rest == whole[70_000:]
    assert (head.total_bytes, head.content_tag) == (len(whole), whole_head.content_tag)
    assert whole_head.total_bytes == len(whole)
    points = [at for tag, at, _ in await points_of(harness, plan) if tag == head.content_tag]
    assert len(points) > 5
    positions = {0, 1, len(whole) - 1, len(whole), *points, *random.Random(5).sample(range(len(whole)), 20)}
    for index in sorted(positions):
        _, rest = await sent(harness, plan, format=form, first_byte=index)
        assert rest == whole[index:], index


async def test_a_position_behind_the_end_has_no_bytes(harness: ResultsHarness, plan: RunPlan) -> None:
    head, rest = await sent(harness, plan, first_byte=10**9)
    assert (rest, head.total_bytes > 0) == (b"", True)


async def test_file_of_one_task_has_its_own_tag_and_length(harness: ResultsHarness, plan: RunPlan) -> None:
    whole, _ = await sent(harness, plan, includes_total=True)
    head, body = await sent(harness, plan, includes_total=True, task="t1")
    assert head.content_tag != whole.content_tag
    assert (head.total_bytes, body.count(b"\n")) == (len(body), ROLLOUTS * SIZES[1])


async def test_a_run_that_goes_on_has_no_tag_and_cannot_be_begun_in_its_middle(
    harness: ResultsHarness,
) -> None:
    live = await harness.open_run_of(3)
    await harness.send(batch(live.run_id, [answered(0)]))

    async def is_recorded() -> bool:
        return await harness.recorded(live.run_id) == 1

    await eventually(is_recorded, "the outcome is recorded")
    head, body = await sent(harness, live, includes_total=True)
    assert (head.content_tag, head.HasField("total_bytes"), body.count(b"\n")) == ("", False, 1)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await sent(harness, live, first_byte=1)
    assert refused.value.code() == grpc.StatusCode.FAILED_PRECONDITION


async def test_a_retried_run_is_other_content(harness: ResultsHarness) -> None:
    plan = await harness.open_run_of(4)
    await harness.send(batch(plan.run_id, [answered(0), failed(1)]))

    async def recorded(count: int) -> bool:
        return await harness.recorded(plan.run_id) == count

    await eventually(lambda: recorded(2), "both are recorded")
    await close(harness, plan)
    first, before = await sent(harness, plan, includes_total=True)
    await harness.open(plan, epoch=2)
    await harness.send(batch(plan.run_id, [answered(1)], epoch=2))
    await eventually(lambda: recorded(2), "the failure is made good")
    await close(harness, plan, epoch=2)
    second, after = await sent(harness, plan, includes_total=True)
    assert second.content_tag != first.content_tag
    assert (second.total_bytes, after != before) == (len(after), True)


@pytest.mark.parametrize("form", ["jsonl", "csv"])
async def test_curl_goes_on_with_a_file_that_was_cut_off(
    harness: ResultsHarness, plan: RunPlan, tmp_path: Path, form: str
) -> None:
    async with gateway_harness(results_address=f"127.0.0.1:{harness.results.grpc.port}") as gateway:
        url = f"{gateway.http}/api/v1/benchmarking/results/{plan.run_id}/export?format={form}"
        whole, part = tmp_path / "whole", tmp_path / "part"
        await curl(url, "-o", str(whole))
        content = whole.read_bytes()
        for length in (1, len(content) // 3, len(content) - 1):
            part.write_bytes(content[:length])
            await curl(url, "-C", "-", "-o", str(part))
            assert part.read_bytes() == content
    assert len(content) > 100_000


async def curl(*arguments: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *bound("curl", "-fsS", *arguments), stderr=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL
    )
    _, reported = await output_of(process, 60)
    assert process.returncode == 0, reported.decode()
