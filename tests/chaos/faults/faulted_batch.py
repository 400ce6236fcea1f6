"""A batch that a fault strikes: its run is struck as any run, and its files are counted in the end."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Self
from uuid import UUID

from openai import APIConnectionError, AsyncOpenAI, InternalServerError
from openai.types import Batch

from tests.chaos.faults.faulted_run import END_LIMIT_SECONDS, FaultedRun, made_ready
from tests.chaos.faults.run_audit import (
    assert_asked_no_more_than_needed,
    assert_counters_equal_rows,
    assert_each_recorded_once,
    read_rows,
)
from tests.fakes.eventually import eventually
from tests.fakes.gateway.openai_client import openai_client
from tests.fakes.stack.state_dir import temporary_state_dir
from tests.harness.batch_counts import BatchCount, count_batch
from tests.harness.stack_harness import MODEL, SHORT_TIMEOUTS, StackHarness, StackOrder, stack_harness

LINES = 5_000
# With 64 requests at a time the model server would answer 5,000 lines in four seconds.
LATENCY_SECONDS = 0.05
FINAL = ("completed", "failed", "expired", "cancelled")


@asynccontextmanager
async def batch_stack(environment: Mapping[str, str] | None = None) -> AsyncIterator[StackHarness]:
    """`environment` beside the short timeouts of the stack."""
    order = StackOrder(aliases={"test-model": MODEL}, environment={**SHORT_TIMEOUTS, **(environment or {})})
    with temporary_state_dir() as state_dir:
        async with stack_harness(state_dir.parent, order) as stack:
            yield stack


@asynccontextmanager
async def retrying_client(stack: StackHarness) -> AsyncIterator[AsyncOpenAI]:
    """Asks again where a process is just coming back."""
    async with openai_client(f"http://{stack.stack.gateway_http}", max_retries=10) as client:
        yield client


def lines_of(numbers: Sequence[int]) -> bytes:
    """Each asks for its own number, so that an answer given to another line is found out."""
    lines = (
        {
            "custom_id": f"request-{number}",
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": {"model": "test-model", "messages": [{"role": "user", "content": f"KEY=w{number}"}]},
        }
        for number in numbers
    )
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


@dataclass
class FaultedBatch:
    client: AsyncOpenAI
    content: bytes
    batch_id: str
    run: FaultedRun

    @classmethod
    async def start(cls, stack: StackHarness, client: AsyncOpenAI, lines: int = LINES) -> Self:
        await made_ready(stack, LATENCY_SECONDS)
        content = lines_of(range(lines))
        file = await client.files.create(file=("lines.jsonl", content), purpose="batch")
        batch = await client.batches.create(
            input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
        )
        run_id = str(UUID(batch.id.removeprefix("batch_")))
        return cls(client, content, batch.id, FaultedRun(stack, run_id, lines))

    async def look(self) -> Batch | None:
        """None while it is unknown."""
        try:
            return await self.client.with_options(max_retries=0).batches.retrieve(self.batch_id)
        except (APIConnectionError, InternalServerError):
            return None

    async def reaches(self, *states: str) -> Batch:
        """Also where it was in such a state too briefly to be seen, and has ended since."""
        seen: Batch | None = None

        async def is_there() -> bool:
            nonlocal seen
            seen = await self.look()
            return seen is not None and seen.status in (*states, *FINAL)

        await eventually(is_there, f"the batch is {' or '.join(states)}", END_LIMIT_SECONDS)
        assert seen is not None
        return seen

    async def ended(self) -> Batch:
        return await self.reaches(*FINAL)

    async def expire(self) -> None:
        """Its window closes now; the shortest that can be ordered is an hour."""
        async with self.run.stack.database() as database:
            await database.execute(
                "UPDATE scheduler.runs SET expires_at = now() WHERE run_id = $1", UUID(self.run.run_id)
            )

    async def files(self, batch: Batch) -> tuple[bytes, bytes]:
        """Output and errors; empty where there is none."""
        output, errors = await asyncio.gather(
            *(self._content(file_id) for file_id in (batch.output_file_id, batch.error_file_id))
        )
        return output, errors

    async def _content(self, file_id: str | None) -> bytes:
        return (await self.client.files.content(file_id)).content if file_id else b""


async def assert_batch_right(faulted: FaultedBatch) -> None:
    """It completed; each line is answered once, in order, with its own answer, and nothing else is left."""
    ended = await faulted.ended()
    assert (ended.status, ended.error_file_id) == ("completed", None), ended
    output, errors = await faulted.files(ended)
    counted = count_batch(faulted.content, output, errors)
    assert counted == BatchCount(faulted.run.total, faulted.run.total, counted.codes), str(counted)
    assert_own_answers(output)
    written = [file.filename async for file in faulted.client.files.list(purpose="batch_output")]
    assert [name for name in written if faulted.batch_id in name] == [f"{faulted.batch_id}_output.jsonl"]
    rows = await read_rows(faulted.run)
    assert_each_recorded_once(rows, faulted.run.total)
    assert_counters_equal_rows(rows)
    await assert_asked_no_more_than_needed(faulted.run)


def assert_own_answers(output: bytes) -> None:
    for text in output.splitlines():
        line = json.loads(text)
        number = line["custom_id"].removeprefix("request-")
        reported = line["response"]["body"]["choices"][0]["message"]["content"]
        assert reported == f"The answer is w{number}.", line
