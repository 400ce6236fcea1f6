"""Logs of other tools as runs: imported, compared with own runs, ranked where asked, exported, refused."""

import asyncio
import json
import zipfile
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from proctor.v1 import comparison_service_pb2, leaderboard_service_pb2, run_pb2
from proctor.v1 import export_service_pb2 as export_pb2
from proctor.wire.stubs import chunks_of
from tests.e2e.harness.entry_points import API, HttpAnswer, http, proctor
from tests.e2e.harness.run_ends import completed
from tests.fakes.stack.state_dir import temporary_state_dir
from tests.harness.stack_harness import MODEL, StackHarness, StackOrder, stack_harness
from tests.harness.starter_model import SUITE as STARTER

pytestmark = pytest.mark.asyncio(loop_scope="module")

LIMIT = 60
OTHER = "hf/other/model"
_STORED = """
SELECT
    (SELECT count(*) FROM results.run_records) AS records, (SELECT count(*) FROM scheduler.runs) AS runs,
    (SELECT count(*) FROM scheduler.deleted_runs) AS announced
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack() -> AsyncIterator[StackHarness]:
    with temporary_state_dir() as state_dir:
        async with stack_harness(state_dir.parent, StackOrder(suites=(STARTER,))) as stack:
            yield stack


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def own(stack: StackHarness) -> str:
    return await completed(stack, run_pb2.RunOrder(suite="starter", model=MODEL, limit=LIMIT))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def log(stack: StackHarness, own: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run as lm-eval would have logged it: our own export of each task."""
    folder = tmp_path_factory.mktemp("log")
    for task in (await stack.client.run(own)).progress.tasks:
        request = export_pb2.ExportRunRequest(
            run_id=own, format=export_pb2.EXPORT_FORMAT_LM_EVAL, task=task.task
        )
        chunks = chunks_of(stack.client.exports.ExportRun(request))
        content = b"".join([chunk.content async for chunk in chunks])
        (folder / f"samples_{task.task}_2026-11-01T10-00-00.000000.jsonl").write_bytes(content)
    return folder


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def imported(stack: StackHarness, log: Path) -> str:
    done = await proctor(stack, f"import {log} --suite starter --model {OTHER} --name theirs --json")
    assert done.code == 0, done.err
    return str(json.loads(done.out)["imported"][0]["run"]["run_id"])


async def figures(stack: StackHarness, run_id: str) -> Mapping[tuple[str, str], tuple[float, float, int]]:
    summary = await stack.client.summary(run_id)
    return {
        (task.task, each.metric): (each.mean, each.stderr, each.n)
        for task in summary.tasks
        for each in task.metrics
    }


async def test_a_round_trip_through_lm_eval_keeps_every_figure(
    stack: StackHarness, own: str, imported: str
) -> None:
    expected, found = await figures(stack, own), await figures(stack, imported)
    assert expected
    assert found.keys() == expected.keys()
    for key, (mean, stderr, n) in expected.items():
        assert found[key][:2] == pytest.approx((mean, stderr), abs=1e-9, rel=0), key
        assert found[key][2] == n


async def test_an_imported_run_pairs_with_an_own_one(stack: StackHarness, own: str, imported: str) -> None:
    request = comparison_service_pb2.CompareRunsRequest(run_ids=[own, imported])
    comparison = (await stack.client.comparisons.CompareRuns(request)).comparison
    by_task = {one.task: one for one in comparison.differences if one.task}
    assert {one.pairs for one in by_task.values()} == {LIMIT}
    assert {one.test for one in by_task.values()} == {"exact McNemar"}
    assert all(one.difference == 0 for one in by_task.values())
    values = {one.name: list(one.values) for one in comparison.conditions}
    assert values["imported from"] == ["none", "lm-eval"]
    assert values["definition"][1] == "unknown"
    assert "rows and prompts" not in values


async def test_it_is_unranked_with_the_reason_unless_its_conditions_are_asked_for(
    stack: StackHarness, own: str, imported: str
) -> None:
    del own
    request = leaderboard_service_pb2.GetLeaderboardRequest(benchmark="starter")
    board = await stack.client.leaderboard.GetLeaderboard(request)
    [entry] = [one for one in board.unranked if one.model == OTHER]
    assert "imported from lm-eval instead of none" in entry.unranked_because
    request.like_run_id = imported
    board = await stack.client.leaderboard.GetLeaderboard(request)
    assert [one.model for one in board.entries] == [OTHER]


async def test_it_shows_where_it_is_from(stack: StackHarness, imported: str) -> None:
    shown = (await http(stack, "GET", f"{API}/results/{imported}")).body
    assert (shown["imported_from"], shown["status"], shown["name"]) == ("lm-eval", "completed", "theirs")
    environment = (await stack.client.run(imported)).environment
    assert environment["import.tool"] == "lm-eval"
    assert len(environment["import.digest"]) == 64
    async with stack.database() as database:
        detail = await database.fetchval(
            "SELECT detail FROM scheduler.audit_records WHERE object_id = $1 AND action = 'import'", imported
        )
    assert environment["import.digest"] in detail


async def test_it_is_exported_as_it_came(
    stack: StackHarness, log: Path, imported: str, tmp_path: Path
) -> None:
    task = (await stack.client.run(imported)).progress.tasks[0].task
    done = await proctor(
        stack, f"export {imported} --format lm_eval --task {task} -o {tmp_path / 'again.jsonl'}"
    )
    assert done.code == 0, done.err
    [source] = log.glob(f"samples_{task}_*")
    first, again = [
        [json.loads(line) for line in each.read_text().splitlines()]
        for each in (source, tmp_path / "again.jsonl")
    ]
    assert first == again


async def test_it_is_deleted_as_any_other(stack: StackHarness, log: Path) -> None:
    done = await proctor(stack, f"import {log} --suite starter --model {OTHER} --json")
    run_id = json.loads(done.out)["imported"][0]["run"]["run_id"]
    assert (await proctor(stack, f"runs delete {run_id}")).code == 0


async def test_a_repeated_import_is_the_run_of_the_first(stack: StackHarness, log: Path) -> None:
    headers = {"Content-Type": "application/jsonl", "Idempotency-Key": "nightly"}
    first, other = sorted(log.iterdir())[:2]

    async def sent(source: Path) -> HttpAnswer:
        path = f"/api/v1/imports?name={source.name}&model={OTHER}"
        return await http(stack, "POST", path, data=source.read_bytes(), headers=headers)

    at_once = await asyncio.gather(sent(first), sent(first))
    answers = [*at_once, await sent(first)]
    assert {answer.status for answer in answers} == {201}, answers
    assert len({answer.body["job"]["job_id"] for answer in answers}) == 1
    refused = await sent(other)
    assert (refused.status, refused.body["reason"]) == (409, "REQUEST_ID_TAKEN")


async def test_a_page_imports_a_log(stack: StackHarness, log: Path) -> None:
    site = f"http://{stack.stack.gateway_http}"
    source = min(log.iterdir())

    async def sent(**fields: str | bytes) -> tuple[int, str, str]:
        form = aiohttp.FormData()
        for name, value in fields.items():
            form.add_field(name, value, filename=source.name if name == "file" else None)
        async with (
            aiohttp.ClientSession(headers={"Origin": site}) as session,
            session.post(f"{site}/imports", data=form, allow_redirects=False) as answer,
        ):
            return answer.status, answer.headers.get("Location", ""), await answer.text()

    status, location, _ = await sent(suite="starter", model=OTHER, file=source.read_bytes())
    assert (status, location.startswith("/runs/")) == (303, True)
    run = await stack.client.run(location.removeprefix("/runs/"))
    assert (run.order.model, run.order.suite) == (OTHER, "starter")
    status, _, page = await sent(suite="starter", model=OTHER, file=b"{}")
    assert (status, "cannot be imported: " in page, f'value="{OTHER}"' in page) == (422, True, True)
    status, _, page = await sent(file=source.read_bytes(), suite="starter")
    assert (status, "must be its last field" in page) == (422, True)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"not a log", "It is no log that can be read"),
        (b"PK\x03\x04 broken", "broken zip archive"),
        (b"{}", "It is no log that can be read"),
    ],
)
async def test_what_is_no_log_is_refused_in_one_sentence(
    stack: StackHarness, content: bytes, problem: str
) -> None:
    answer = await http(
        stack,
        "POST",
        "/api/v1/imports?name=mine.zip",
        data=content,
        headers={"Content-Type": "application/zip"},
    )
    assert answer.status == 400
    assert problem in answer.body["detail"]


async def test_a_refused_log_leaves_nothing(stack: StackHarness, log: Path, tmp_path: Path) -> None:
    """The second task is broken: the first one is not kept either."""
    async with stack.database() as database:
        before = await database.fetchrow(_STORED)
    packed = tmp_path / "log.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for source in log.iterdir():
            archive.write(source, source.name)
        archive.writestr("samples_zz_2026-11-01T10-00-00.000000.jsonl", b'{"doc_id": 0,\n')
    done = await proctor(stack, f"import {packed} --suite starter --model {OTHER}")
    assert done.code != 0
    assert "Line 1 of samples_zz" in done.err
    async with stack.database() as database:
        assert await database.fetchrow(_STORED) == before
