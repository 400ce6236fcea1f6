"""Data sets through the whole stack: uploaded in every form, listed, shown, refused, cut off, deleted."""

import asyncio
import gzip
import io
import json
import os
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import pytest_asyncio
import zstandard

from proctor.client.datasets import Upload
from proctor.v1 import dataset_service_pb2 as dataset_pb2
from tests.e2e.harness.entry_points import HttpAnswer, http, proctor
from tests.fakes.eventually import eventually
from tests.fakes.stack.state_dir import temporary_state_dir
from tests.fakes.thorough_cases import first_cases
from tests.harness.stack_harness import StackHarness, stack_harness
from tests.reference.golden_reference import folder_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

DATASETS = "/admin/datasets"
ROWS = [
    {"id": f"r{number}", "prompt": f"{number} + 1 =", "target": f"{number + 1}"} for number in range(1000)
]
JSONL = b"".join(json.dumps(row).encode() + b"\n" for row in ROWS)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack() -> AsyncIterator[StackHarness]:
    with temporary_state_dir() as state_dir:
        async with stack_harness(state_dir.parent) as stack:
            yield stack


def csv_file() -> bytes:
    lines = [f"{row['id']},{row['prompt']},{row['target']}" for row in ROWS]
    return "\n".join(["id,prompt,target", *lines]).encode()


def parquet_file() -> bytes:
    written = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(ROWS), written, row_group_size=300)
    return written.getvalue()


FILES = {
    "rows.jsonl": JSONL,
    "rows.csv": csv_file(),
    "rows.parquet": parquet_file(),
    "rows.jsonl.gz": gzip.compress(JSONL),
    "rows.csv.zst": zstandard.compress(csv_file()),
}


async def uploaded(stack: StackHarness, name: str, content: bytes) -> HttpAnswer:
    form = aiohttp.FormData()
    form.add_field("file", io.BytesIO(content), filename=name)
    return await http(stack, "POST", f"{DATASETS}/upload", data=form)


async def listed(stack: StackHarness) -> list[dict[str, Any]]:
    datasets: list[dict[str, Any]] = (await http(stack, "GET", DATASETS)).body["datasets"]
    return datasets


def objects(stack: StackHarness) -> list[Path]:
    # Folders may go while they are walked.
    walked = os.walk(stack.stack.options.state_dir / "objects")
    return [Path(folder) / name for folder, _, names in walked for name in names]


@first_cases(2, "name", FILES)
async def test_file_of_every_form_is_kept_shown_and_deleted(stack: StackHarness, name: str) -> None:
    answer = await uploaded(stack, name, FILES[name])
    assert (answer.status, answer.body["name"], answer.body["count"]) == (200, name, len(ROWS))
    dataset_id = answer.body["dataset_id"]
    newest = (await listed(stack))[0]
    assert (newest["id"], newest["uploaded_at"]) == (dataset_id, answer.body["uploaded_at"])
    assert (newest["target_count"], newest["size_bytes"]) == (len(ROWS), len(FILES[name]))
    preview = await http(stack, "GET", f"{DATASETS}/{dataset_id}/preview?first=998&rows=5")
    assert preview.body["rows"] == [
        {
            "row": row,
            "id": f"r{row}",
            "body": {"prompt": f"{row} + 1 ="},
            "target": f"{row + 1}",
            "metadata": None,
        }
        for row in (998, 999)
    ]
    assert objects(stack)
    assert (await http(stack, "DELETE", f"{DATASETS}/{dataset_id}")).status == 200
    gone = await http(stack, "GET", f"{DATASETS}/{dataset_id}")
    assert (gone.status, gone.body["reason"]) == (404, "DATASET_NOT_FOUND")
    await eventually(lambda: not objects(stack), "its objects are gone")


@pytest.mark.thorough
async def test_command_line_uploads_lists_shows_and_deletes(stack: StackHarness, tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_bytes(JSONL)
    dataset = (await proctor(stack, f"datasets upload {file} --user bob --json")).document["dataset"]
    assert (dataset["row_count"], dataset["user"], dataset["format"]) == (len(ROWS), "bob", "jsonl")
    shown = await proctor(stack, f"datasets show {dataset['dataset_id']} --row 7 --rows 1")
    assert "row 7 · r7" in shown.out
    assert '"prompt": "7 + 1 ="' in shown.out
    assert dataset["dataset_id"] in (await proctor(stack, "datasets list")).out
    assert (await proctor(stack, f"datasets delete {dataset['dataset_id']}")).code == 0
    assert not await listed(stack)


async def test_same_content_under_two_names_is_two_data_sets_of_one_digest(stack: StackHarness) -> None:
    first, second = [
        (await stack.client.upload_dataset(Upload(io.BytesIO(JSONL), name))).dataset
        for name in ("first.jsonl", "second.jsonl")
    ]
    assert first.digest == second.digest
    await stack.client.datasets.DeleteDataset(dataset_pb2.DeleteDatasetRequest(dataset_id=first.dataset_id))
    request = dataset_pb2.PreviewDatasetRequest(dataset_id=second.dataset_id)
    assert len((await stack.client.datasets.PreviewDataset(request)).rows) == 10
    await stack.client.datasets.DeleteDataset(dataset_pb2.DeleteDatasetRequest(dataset_id=second.dataset_id))
    await eventually(lambda: not objects(stack), "their objects are gone")


async def test_refused_file_names_its_lines_at_every_api_and_leaves_nothing(
    stack: StackHarness, tmp_path: Path
) -> None:
    content = JSONL + b'{"prompt": 7}\n' + b"not JSON\n" + b'{"id": "r3", "prompt": "again"}\n'
    answer = await uploaded(stack, "rows.jsonl", content)
    assert (answer.status, answer.body["reason"], answer.body["fault_count"]) == (422, "INVALID_DATASET", 3)
    assert [fault["line"] for fault in answer.body["faults"]] == [1001, 1002, 1003]
    assert answer.body["faults"][0]["field"] == "prompt"
    file = tmp_path / "rows.jsonl"
    file.write_bytes(content)
    reported = await proctor(stack, f"datasets upload {file}")
    assert (reported.code, reported.out) == (2, "")
    assert reported.err.startswith("rows.jsonl is refused and nothing of it is stored: 3 faults.")
    assert not await listed(stack)
    assert not objects(stack)


async def test_broken_batch_files_are_refused_by_the_lines_that_are_wrong(stack: StackHarness) -> None:
    broken = folder_of("PROCTOR_DATA_DIR") / "batch"
    for case in json.loads((broken / "broken/INDEX.json").read_text()):
        answer = await uploaded(stack, case["file"], (broken / case["file"]).read_bytes())
        if case["expect"] == "accept":
            assert (answer.status, answer.body["count"]) == (200, case["lines"])
            await http(stack, "DELETE", f"{DATASETS}/{answer.body['dataset_id']}")
            continue
        assert answer.status == 422, case["file"]
        lines = {fault["line"] for fault in answer.body["faults"] if fault["line"]}
        assert lines <= set(case["bad_lines"]), case["file"]
        assert lines or not case["bad_lines"], case["file"]
    assert not await listed(stack)
    await eventually(lambda: not objects(stack), "no object is left")


async def test_upload_that_is_cut_off_leaves_nothing(stack: StackHarness) -> None:
    host, port = stack.stack.gateway_http.split(":")
    _, writer = await asyncio.open_connection(host, int(port))
    content = many_rows(60_000)
    length = f"Content-Length: {2 * len(content)}"
    fields = f"Host: localhost\r\nContent-Type: application/jsonl\r\n{length}"
    head = f"POST {DATASETS}/upload?name=x.jsonl HTTP/1.1\r\n{fields}\r\n\r\n"
    writer.write(head.encode() + content)
    await writer.drain()
    await eventually(lambda: bool(objects(stack)), "the first rows lie in the store")
    writer.transport.abort()
    await eventually(lambda: not objects(stack), "what was stored is removed")
    assert not await listed(stack)


def many_rows(count: int) -> bytes:
    """That do not compress well, so that some are stored before the last has come."""
    draw = random.Random(1)
    return "".join(f'{{"prompt": "{draw.randbytes(200).hex()}"}}\n' for _ in range(count)).encode()
