"""Runs over data sets through the whole stack: uploaded, run, read, downloaded, ranked, compared, deleted."""

import asyncio
import io
import json
import uuid
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from proctor.client.datasets import Upload
from proctor.v1 import dataset_service_pb2 as dataset_pb2
from proctor.v1 import run_pb2, sample_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from tests.e2e.harness.entry_points import API, http, proctor
from tests.e2e.harness.run_ends import LIMIT_SECONDS, ended
from tests.harness.stack_harness import MODEL, StackHarness
from tests.reference.golden_reference import folder_of

pytestmark = pytest.mark.asyncio(loop_scope="session")

RUNS = "/admin/benchmarks"
OTHER = "openai/other"
# Three answers of four are as expected.
KEYED = [
    {"id": f"k{number}", "prompt": f"KEY=w{number}", "target": f"The answer is {word}."}
    for number, word in enumerate(("w0", "w1", "w2", "something else"))
]
KEYED_FILE = b"".join(json.dumps(row).encode() + b"\n" for row in KEYED)


def batch_50() -> Path:
    return folder_of("PROCTOR_DATA_DIR") / "batch/batch_50.jsonl"


async def uploaded(stack: StackHarness, name: str, content: bytes) -> str:
    form = aiohttp.FormData()
    form.add_field("file", io.BytesIO(content), filename=name)
    answer = await http(stack, "POST", "/admin/datasets/upload", data=form)
    assert answer.status == 200, answer.body
    return str(answer.body["dataset_id"])


async def over(stack: StackHarness, benchmark_id: str) -> dict[str, Any]:
    """As its list of one shows it in the end; its progress never went back."""
    progress = -1
    async with asyncio.timeout(LIMIT_SECONDS):
        while True:
            shown = (await http(stack, "GET", f"{RUNS}/{benchmark_id}")).body
            assert shown["progress"] >= progress
            progress = shown["progress"]
            if shown["status"] in ("completed", "failed", "cancelled"):
                return dict(shown)


async def test_batch_file_is_run_read_downloaded_in_its_order_and_deleted(stack: StackHarness) -> None:
    lines = [json.loads(line) for line in batch_50().read_text().splitlines()]
    ids = [line["custom_id"] for line in lines]
    dataset_id = await uploaded(stack, "batch_50.jsonl", batch_50().read_bytes())
    order = {"model_id": MODEL, "dataset_id": dataset_id}
    refused = await http(stack, "POST", f"{RUNS}/run", json=order)
    assert (refused.status, refused.body["reason"]) == (400, "MODEL_MISMATCH")

    key = {"Idempotency-Key": str(uuid.uuid4())}
    order["line_models"] = ["test-model"]  # type: ignore[assignment]  # JSON
    started = await http(stack, "POST", f"{RUNS}/run", json=order, headers=key)
    assert (started.status, started.body["dataset_name"]) == (200, "batch_50.jsonl")
    again = await http(stack, "POST", f"{RUNS}/run", json=order, headers=key)
    benchmark_id = started.body["benchmark_id"]
    assert again.body["benchmark_id"] == benchmark_id

    shown = await over(stack, benchmark_id)
    assert (shown["status"], shown["error"]) == ("completed", None)
    assert (shown["progress"], shown["completed"], shown["total"], shown["failed"]) == (100, 50, 50, 0)
    assert (shown["scores"], shown["answered"], shown["throughput"] > 0) == ({}, 50, True)
    listed = (await http(stack, "GET", f"{RUNS}?dataset_id={dataset_id}")).body
    assert [one["benchmark_id"] for one in listed["benchmarks"]] == [benchmark_id]
    assert (listed["total"], listed["next_cursor"]) == (1, None)

    path = f"{RUNS}/{benchmark_id}/results"
    first = (await http(stack, "GET", f"{path}?limit=30")).body
    rest = (await http(stack, "GET", f"{path}?limit=30&cursor={first['next_cursor']}")).body
    rows = first["results"] + rest["results"]
    assert ([row["custom_id"] for row in rows], rest["next_cursor"]) == (ids, None)
    answers = [row["response"]["body"]["choices"][0]["message"]["content"] for row in rows]
    assert all(answers)
    assert {row["status"] for row in rows} == {"answered"}
    asked = (await stack.model_server.stats())["last_request"]
    assert asked["max_tokens"] in {line["body"]["max_tokens"] for line in lines}

    file = await text_of(stack, f"{path}?format=jsonl")
    assert [json.loads(line)["row_id"] for line in file.splitlines()] == ids
    assert await text_of(stack, f"{path}?format=jsonl", first_byte=1000) == file[1000:]
    table = await text_of(stack, f"{RUNS}/{benchmark_id}/export?format=csv")
    assert len(table.splitlines()) > len(ids)

    assert (await http(stack, "DELETE", f"{RUNS}/{benchmark_id}")).status == 200
    for method, tail in (("GET", ""), ("GET", "/results"), ("DELETE", "")):
        assert (await http(stack, method, f"{RUNS}/{benchmark_id}{tail}")).status == 404
    assert (await http(stack, "DELETE", f"/admin/datasets/{dataset_id}")).status == 200


async def text_of(stack: StackHarness, path: str, first_byte: int = 0) -> str:
    """A download, or the rest of one that was cut off."""
    url = f"http://{stack.stack.gateway_http}{path}"
    headers = {"Range": f"bytes={first_byte}-"} if first_byte else {}
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as response:
        assert response.status == (206 if first_byte else 200)
        return await response.text()


async def test_targets_are_scored_ranked_and_compared_by_the_data_set(stack: StackHarness) -> None:
    dataset_id = await uploaded(stack, "keyed.jsonl", KEYED_FILE)
    order = {"dataset_id": dataset_id, "metrics": ["exact_match"], "prompt_form": "chat"}
    ended_runs = []
    for model in (MODEL, OTHER):
        started = await http(stack, "POST", f"{RUNS}/run", json={**order, "model_id": model})
        ended_runs.append(await over(stack, started.body["benchmark_id"]))
    for shown in ended_runs:
        assert shown["status"] == "completed", shown["error"]
        assert (shown["scores"]["exact_match"]["mean"], shown["scores"]["exact_match"]["n"]) == (0.75, 4)
    rows = (await http(stack, "GET", f"{RUNS}/{ended_runs[0]['benchmark_id']}/results")).body["results"]
    assert [row["scores"]["exact_match"] for row in rows] == [1.0, 1.0, 1.0, 0.0]
    assert [row["target"] for row in rows] == [row["target"] for row in KEYED]

    path = f"{API}/leaderboard?suite={dataset_id}&metric=exact_match"
    leaderboard = (await http(stack, "GET", path)).body
    scores = {f"{line['provider']}/{line['model']}": line["score"] for line in leaderboard["leaderboard"]}
    assert scores == {MODEL: 0.75, OTHER: 0.75}
    compared = {"model_ids": [MODEL, OTHER], "benchmark_suite": dataset_id, "metrics": ["exact_match"]}
    answer = await http(stack, "POST", f"{API}/compare", json=compared)
    assert answer.status == 200, answer.body
    comparison = answer.body["comparison"]
    names = [model.partition("/")[2] for model in (MODEL, OTHER)]
    assert (comparison["models_compared"], comparison["benchmark_suite"]) == (names, dataset_id)
    compared_on = {(each["metric"], each["pairs"]) for each in comparison["differences"]}
    assert compared_on == {("exact_match", 4)}
    # Runs that are over do not use it.
    assert (await http(stack, "DELETE", f"/admin/datasets/{dataset_id}")).status == 200


@pytest.mark.thorough
async def test_command_line_uploads_once_runs_shows_and_deletes(stack: StackHarness, tmp_path: Path) -> None:
    file = tmp_path / "keyed.jsonl"
    file.write_bytes(KEYED_FILE)
    line = f"run --dataset {file} --chat --metric exact_match --completion-window 2h"
    first = await proctor(stack, f"{line} --model {MODEL}")
    assert first.code == 0, first.err
    for part in (
        "keyed.jsonl is the data set ds_",
        "exact_match",
        "0.7500",
        "Answers: 4 of 4 to keyed.jsonl",
    ):
        assert part in first.out
    second = (await proctor(stack, f"{line} --model {OTHER} --json")).document
    run = second["run"]
    assert run["order"]["completion_window_seconds"] == 7200
    assert run["order"]["dataset_id"] in first.out

    assert "keyed.jsonl" in (await proctor(stack, "runs")).out
    runs = (await proctor(stack, f"runs --dataset {run['order']['dataset_id']} --json")).document
    assert (runs["total"], runs["runs"][0]["run_id"]) == (2, run["run_id"])
    results = await proctor(stack, f"results {run['run_id']} --outcomes")
    assert all(row["id"] in results.out for row in KEYED)
    answers = tmp_path / "answers.jsonl"
    await proctor(stack, f"export {run['run_id']} --format jsonl -o {answers}")
    assert [json.loads(each)["row_id"] for each in answers.read_text().splitlines()] == [
        "k0",
        "k1",
        "k2",
        "k3",
    ]
    compared = await proctor(stack, f"compare {MODEL} {OTHER} --suite {run['order']['dataset_id']}")
    assert compared.code == 0, compared.err
    assert (await proctor(stack, f"runs delete {run['run_id']}")).out.startswith("Run ")
    assert (await proctor(stack, f"results {run['run_id']}")).code == 4


async def test_client_runs_what_it_has_uploaded(stack: StackHarness) -> None:
    dataset = (await stack.client.upload_dataset(Upload(io.BytesIO(KEYED_FILE), "mine.jsonl"))).dataset
    metrics = [sample_pb2.MetricUse(name="exact_match")]
    order = run_pb2.RunOrder(dataset_id=dataset.dataset_id, model=MODEL, metrics=metrics, limit=2)
    run = await ended(
        stack, (await stack.client.runs.SubmitRun(scheduler_pb2.SubmitRunRequest(order=order))).run.run_id
    )
    assert (run.progress.total, run.dataset_name, run.order.suite) == (2, "mine.jsonl", "")
    await stack.client.runs.DeleteRun(scheduler_pb2.DeleteRunRequest(run_id=run.run_id))
    await stack.client.datasets.DeleteDataset(dataset_pb2.DeleteDatasetRequest(dataset_id=dataset.dataset_id))
