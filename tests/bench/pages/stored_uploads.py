"""Data sets, files and batches: a real one of each with its run, and copies put into the tables by SQL.

`PROCTOR_PAGES_UPLOADS` sets how many (1,000).
"""

import io
import json
import os
from dataclasses import dataclass

from proctor.client.datasets import Upload
from proctor.v1 import run_pb2
from services.scheduler.postgres import SCHEMA as SCHEDULER
from tests.bench.pages.copied_rows import FILL_SECONDS, connected, copy_of, stored_columns
from tests.e2e.harness.run_ends import completed
from tests.fakes.eventually import eventually
from tests.fakes.gateway.openai_client import openai_client
from tests.harness.stack_harness import StackHarness

UPLOADS = int(os.environ.get("PROCTOR_PAGES_UPLOADS", "1000"))
_ROWS = 200
_MODEL = "openai/fake"
_COPIES = f"generate_series(1, {UPLOADS}) AS n"
_AT = "now() - n * interval '10 minutes'"
# The columns of a copy that differ, as parts of a JSON object; batches are of runs that are there already.
_TABLES = {
    "datasets": f"'dataset_id', 'ds_' || md5('copy' || n), 'uploaded_at', {_AT}, 'request_id', NULL",
    "files": f"'file_id', 'file-' || md5('copy' || n), 'created_at', {_AT}, 'request_id', NULL,"
    " 'prefix', 'copies/' || n",
    "batches": f"'batch_id', 'batch_' || md5('copy' || n), 'created_at', {_AT}, 'request_id', NULL,"
    " 'run_id', md5('copy' || n)::uuid",
}


@dataclass(frozen=True)
class StoredUploads:
    dataset_id: str
    batch_id: str


async def store_uploads(stack: StackHarness) -> StoredUploads:
    """The copies of the batch need as many copied runs."""
    lines = [{"id": f"q-{n}", "prompt": f"What is {n} and {n}?", "target": str(2 * n)} for n in range(_ROWS)]
    content = io.BytesIO("\n".join(map(json.dumps, lines)).encode())
    stored = await stack.client.upload_dataset(Upload(content, "sums.jsonl"))
    dataset_id = stored.dataset.dataset_id
    run_id = await completed(stack, run_pb2.RunOrder(project_id=1, dataset_id=dataset_id, model=_MODEL))
    batch_id = await _batch(stack)
    connection = await connected(stack, SCHEDULER)
    changes = {
        "run_id": "md5('over rows' || n)::uuid",
        "request_id": "NULL",
        **dict.fromkeys(("created_at", "queued_at", "started_at", "admitted_at", "finished_at"), _AT),
    }
    await connection.execute(await copy_of(connection, SCHEDULER, "runs", changes, (run_id, _COPIES)))
    for table, changed in _TABLES.items():
        named = [f'"{column}"' for column in await stored_columns(connection, SCHEDULER, table)]
        values = ", ".join(f"(copy).{column}" for column in named)
        copied = f"SELECT jsonb_populate_record(t, jsonb_build_object({changed})) AS copy"
        first = f"t.ctid = (SELECT min(ctid) FROM {table})"
        source = f"({copied} FROM {table} AS t, {_COPIES} WHERE {first}) AS copied"
        await connection.execute(f"INSERT INTO {table} ({', '.join(named)}) SELECT {values} FROM {source}")
    await connection.execute("VACUUM ANALYZE", timeout=FILL_SECONDS)
    await connection.close()
    return StoredUploads(dataset_id, batch_id)


async def _batch(stack: StackHarness) -> str:
    body = {"model": _MODEL, "messages": [{"role": "user", "content": "One and one?"}]}
    lines = [
        json.dumps({"custom_id": f"r-{n}", "method": "POST", "url": "/v1/chat/completions", "body": body})
        for n in range(_ROWS)
    ]
    async with openai_client(f"http://{stack.stack.gateway_http}") as client:
        given = await client.files.create(file=("lines.jsonl", "\n".join(lines).encode()), purpose="batch")
        batch = await client.batches.create(
            input_file_id=given.id, endpoint="/v1/chat/completions", completion_window="24h"
        )

        async def is_done() -> bool:
            return (await client.batches.retrieve(batch.id)).status == "completed"

        await eventually(is_done, "the batch is completed", 120)
        return batch.id
