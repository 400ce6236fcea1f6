"""Two models that answer differently over one data set: side by side, marked, exported, uploaded again."""

import io
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from proctor.client.datasets import Upload
from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from tests.e2e.harness.entry_points import http, proctor
from tests.e2e.harness.run_ends import ended
from tests.harness.stack_harness import MODEL, StackHarness

pytestmark = pytest.mark.asyncio(loop_scope="session")

RUNS = "/admin/benchmarks"
OTHER = "openai/other"


def lines_of(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


# A model says its own name to every third row, and the word after KEY= to the others.
ROWS: list[dict[str, Any]] = [
    {
        "id": f"r{number}",
        "messages": [
            {"role": "user", "content": f"KEY={'WHO' if number % 3 == 0 else f'w{number}'}", "name": "ann"}
        ],
    }
    for number in range(30)
]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def run_ids(stack: StackHarness) -> list[str]:
    """Of both models over the same rows."""
    file = b"".join(json.dumps(row).encode() + b"\n" for row in ROWS)
    dataset = (await stack.client.upload_dataset(Upload(io.BytesIO(file), "rows.jsonl"))).dataset
    ids = []
    for model in (MODEL, OTHER):
        order = run_pb2.RunOrder(dataset_id=dataset.dataset_id, model=model)
        submitted = await stack.client.runs.SubmitRun(scheduler_pb2.SubmitRunRequest(order=order))
        run = await ended(stack, submitted.run.run_id)
        assert run.state == run_pb2.RUN_STATE_COMPLETED, run.error
        ids.append(run.run_id)
    return ids


def shown_ids(run_ids: list[str]) -> list[str]:
    return [f"bm_{run_id.replace('-', '')}" for run_id in run_ids]


async def test_side_by_side_shows_only_rows_that_differ(stack: StackHarness, run_ids: list[str]) -> None:
    first, second = shown_ids(run_ids)
    path = f"{RUNS}/side-by-side?ids={first},{second}"
    beside = (await http(stack, "GET", f"{path}&differing=true&limit=200")).body
    assert [row["custom_id"] for row in beside["rows"]] == [f"r{number}" for number in range(0, 30, 3)]
    assert [answer["text"] for answer in beside["rows"][0]["answers"]] == [
        "The answer is fake.",
        "The answer is other.",
    ]
    assert beside["next_cursor"] is None
    assert len((await http(stack, "GET", f"{path}&limit=200")).body["rows"]) == 30
    found = (await http(stack, "GET", f"{RUNS}/{second}/results?text=IS%20OTHER&id=r2")).body
    assert [row["custom_id"] for row in found["results"]] == ["r21", "r24", "r27"]
    shown = await proctor(stack, f"side-by-side {' '.join(run_ids)} --differing --page-size 2")
    assert ('"The answer is fake."' in shown.out, '"The answer is other."' in shown.out) == (True, True)


async def test_golden_answers_are_exported_and_become_a_data_set(
    stack: StackHarness, run_ids: list[str], tmp_path: Path
) -> None:
    first, second = shown_ids(run_ids)
    named = {"answers": [{"custom_id": "r3"}, {"sample": 4}]}
    marked = await http(stack, "PUT", f"{RUNS}/{first}/golden", json=named)
    assert (marked.status, marked.body["golden_count"]) == (200, 2)
    assert (await proctor(stack, f"golden mark {run_ids[1]} r3 r6")).code == 0
    golden = (await http(stack, "GET", f"{RUNS}/{second}/results?golden=true")).body
    assert [(row["custom_id"], row["is_golden"]) for row in golden["results"]] == [("r3", True), ("r6", True)]

    url = f"http://{stack.stack.gateway_http}{RUNS}/golden/export?ids={first},{second}&form=training"
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        training = lines_of(await response.text())
    assert training[0] == {
        "messages": [*ROWS[4]["messages"], {"role": "assistant", "content": "The answer is w4."}]
    }
    exported = tmp_path / "golden.jsonl"
    written = await proctor(stack, f"golden export {' '.join(run_ids)} --form test -o {exported}")
    assert written.code == 0, written.err
    assert lines_of(exported.read_text()) == [
        {**ROWS[4], "target": "The answer is w4."},
        {**ROWS[3], "target": "The answer is other."},
        {**ROWS[6], "target": "The answer is other."},
    ]
    again = await proctor(stack, f"run --dataset {exported} --model {OTHER} --metric exact_match --json")
    assert again.code == 0, again.err
    [task] = again.document["summary"]["tasks"]
    assert (task["metrics"][0]["mean"], task["metrics"][0]["n"]) == (1.0, 3)
