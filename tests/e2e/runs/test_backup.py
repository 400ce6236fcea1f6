"""A stack is backed up while it works, and all of it is there in another one: read, continued, refused."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from proctor.client.datasets import Upload
from proctor.client.proctor_client import ProctorClient
from proctor.stack.backup import Backup, back_up, restore
from proctor.stack.errors import BackupFailed
from proctor.stack.local_stack import LocalStack
from proctor.stack.options import StackOptions
from proctor.v1 import run_pb2
from tests.e2e.harness.run_ends import all_outcomes, completed, ended
from tests.fakes.eventually import eventually
from tests.fakes.gateway.openai_client import openai_client
from tests.fakes.stack.state_dir import temporary_state_dir
from tests.harness.forks.services import start_warm
from tests.harness.rollout_orders import MEND, SPOIL, harbor_tasks, rollouts_order
from tests.harness.stack_harness import StackHarness, StackOrder, keyed_order, stack_harness

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROWS = 200
# Of the run over the suite, that over the data set, the batch and the rollouts.
ENDED = 40 + 30 + 1 + 2
ROW = b'{"id": "%d", "prompt": "KEY=d%d", "target": "yes"}\n'


@dataclass(frozen=True)
class Kept:
    """A backup with what a reader saw before it; `running` had not ended."""

    stack: StackHarness
    backup: Backup
    read: dict[str, bytes]
    running: str


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def kept() -> AsyncIterator[Kept]:
    with temporary_state_dir() as state_dir:
        async with stack_harness(state_dir.parent, StackOrder(concurrency=8)) as stack:
            addresses = await _work(stack, state_dir.parent / "tasks")
            await stack.model_server.control(latency_seconds=2.0)
            running = await stack.submit()

            async def has_answers() -> bool:
                return await _recorded(stack, running) > 0

            await eventually(has_answers, "some answers are recorded")
            backup = await back_up(stack.stack.options, state_dir.parent / "our backups")
            read = await _read(stack.stack, addresses)
            await stack.model_server.control(latency_seconds=0.0)
            yield Kept(stack, backup, read, running)


async def _work(stack: StackHarness, tasks: Path) -> list[str]:
    """Paths of all that is read later."""
    run_id = await completed(stack, keyed_order(limit=40))
    rows = b"".join(ROW % (number, number) for number in range(30))
    dataset = await stack.client.upload_dataset(Upload(BytesIO(rows), "rows.jsonl"))
    dataset_run = await completed(
        stack, run_pb2.RunOrder(project_id=1, dataset_id=dataset.dataset.dataset_id, model="openai/fake")
    )
    tasks.mkdir()
    order = rollouts_order("worked", harbor_tasks(tasks, {"mended": MEND, "spoiled": SPOIL}))
    ordered = await stack.client.rollouts.SubmitRollouts(order)
    rollouts = ordered.runs[0].run_id
    assert (await ended(stack, rollouts)).state == run_pb2.RUN_STATE_COMPLETED
    artifacts = [
        f"/api/v1/rollouts/runs/{rollouts}/{sample}/0/artifacts/{record['execution']}/{name}"
        for sample, record in enumerate(
            [json.loads(each.outcome.answer.body_json) for each in await all_outcomes(stack, rollouts)]
        )
        for name in record["artifacts"]
    ]
    exports = [
        f"/api/v1/benchmarking/results/{each}/export?format={form}"
        for each in (run_id, dataset_run, rollouts)
        for form in ("jsonl", "csv")
    ]
    results = [f"/api/v1/benchmarking/results/{each}" for each in (run_id, dataset_run, rollouts)]
    return [
        *(*results, *exports, *artifacts, *await _batch(stack)),
        *("/admin/datasets", "/v1/batches"),
        f"/admin/datasets/{dataset.dataset.dataset_id}/preview",
    ]


async def _batch(stack: StackHarness) -> list[str]:
    body = {"model": "openai/fake", "messages": [{"role": "user", "content": "KEY=b1"}]}
    line = {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": body}
    async with openai_client(f"http://{stack.stack.gateway_http}") as client:
        file = await client.files.create(file=("lines.jsonl", json.dumps(line).encode()), purpose="batch")
        batch = await client.batches.create(
            input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
        )

        async def is_done() -> bool:
            return (await client.batches.retrieve(batch.id)).status == "completed"

        await eventually(is_done, "the batch is done")
        written = (await client.batches.retrieve(batch.id)).output_file_id
    return [f"/v1/files/{file_id}/content" for file_id in (file.id, written)]


async def _read(stack: LocalStack, addresses: list[str]) -> dict[str, bytes]:
    async def read(address: str) -> bytes:
        async with session.get(f"http://{stack.gateway_http}{address}") as response:
            assert response.status == 200, (address, await response.text())
            return await response.read()

    async with aiohttp.ClientSession() as session:
        return {address: await read(address) for address in addresses}


async def _recorded(stack: StackHarness, run_id: str) -> int:
    async with stack.database() as database:
        count = "SELECT count(*) FROM results.outcomes WHERE run_id = $1"
        return int(await database.fetchval(count, run_id))


def _rows_of(backup: Backup, table: str) -> int:
    manifest = json.loads((Path(backup.place) / "backup.json").read_bytes())
    tables = [each for schema in manifest["schemas"] for each in schema["tables"]]
    return int(next(each["rows"] for each in tables if each["name"] == table))


@asynccontextmanager
async def another_stack(kept: Kept) -> AsyncIterator[StackOptions]:
    with temporary_state_dir() as state_dir:
        state_dir.mkdir()
        yield replace(kept.stack.stack.options, state_dir=state_dir)


async def test_a_restored_stack_has_it_all_and_goes_on(kept: Kept) -> None:
    assert ENDED < _rows_of(kept.backup, "outcomes") < ENDED + ROWS
    async with another_stack(kept) as options:
        restored = await restore(options, Path(kept.backup.place))
        assert restored == kept.backup
        stack = LocalStack(options, report=lambda _: None, start_program=start_warm)
        await stack.start()
        try:
            async with ProctorClient(stack.gateway_grpc) as client:
                harness = StackHarness(stack, client, kept.stack.model_server)
                assert await _read(stack, list(kept.read)) == kept.read
                run = await ended(harness, kept.running)
                assert run.state == run_pb2.RUN_STATE_COMPLETED, run.error
                samples = [each.outcome.sample for each in await all_outcomes(harness, kept.running)]
                assert sorted(samples) == list(range(ROWS))
                # The numbers of what Postgres numbers go on.
                await completed(harness, keyed_order(limit=5))
        finally:
            await stack.stop()
        with pytest.raises(BackupFailed, match="not empty"):
            await restore(options, Path(kept.backup.place))
        # Stopped, it is backed up by its own Postgres.
        again = await back_up(options, options.state_dir.parent / "our backups")
        assert again.rows > kept.backup.rows


@pytest.mark.thorough
async def test_half_a_backup_changes_nothing(kept: Kept, tmp_path: Path) -> None:
    def cut_off(folder: Path) -> None:
        (folder / "backup.json").unlink()

    def shorten(folder: Path) -> None:
        part = folder / "tables/results/outcomes/000000"
        part.write_bytes(part.read_bytes()[:-1])

    def lose(folder: Path) -> None:
        next(path for path in (folder / "objects").rglob("*") if path.is_file()).unlink()

    def renew(folder: Path) -> None:
        manifest = json.loads((folder / "backup.json").read_bytes())
        manifest["schemas"][0]["migrations"]["9999_later.sql"] = "9999_later.sql"
        (folder / "backup.json").write_text(json.dumps(manifest))

    async with another_stack(kept) as options:
        for number, (change, refusal) in enumerate(
            (
                (cut_off, "no backup.json"),
                (shorten, "tables/results/outcomes/000000 is not as it was written"),
                (lose, "is missing"),
                (renew, "of a newer release"),
            )
        ):
            folder = tmp_path / str(number)
            await asyncio.to_thread(shutil.copytree, kept.backup.place, folder)
            change(folder)
            with pytest.raises(BackupFailed, match=refusal):
                await restore(options, folder)
        assert (await restore(options, Path(kept.backup.place))).rows == kept.backup.rows
