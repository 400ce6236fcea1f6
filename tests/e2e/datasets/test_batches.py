"""Batches through the whole stack by the official client: answered, read, cancelled, refused, deleted."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from openai import AsyncOpenAI, BadRequestError, ConflictError, NotFoundError, OpenAI
from openai.types import Batch, FileObject
from openai.types.chat import ChatCompletion

from tests.fakes.eventually import eventually
from tests.fakes.gateway.openai_client import openai_client
from tests.fakes.stack.state_dir import temporary_state_dir
from tests.harness.stack_harness import MODEL, StackHarness, StackOrder, stack_harness
from tests.reference.golden_reference import folder_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

LIMIT_SECONDS = 60
FINAL = ("completed", "failed", "expired", "cancelled")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack() -> AsyncIterator[StackHarness]:
    order = StackOrder(aliases={"test-model": MODEL}, concurrency=8)
    with temporary_state_dir() as state_dir:
        async with stack_harness(state_dir.parent, order) as stack:
            yield stack


@pytest_asyncio.fixture(loop_scope="module")
async def client(stack: StackHarness) -> AsyncIterator[AsyncOpenAI]:
    async with openai_client(f"http://{stack.stack.gateway_http}") as opened:
        yield opened
    await stack.model_server.control(fault=None, latency_seconds=0)


def batch_folder() -> Path:
    return folder_of("PROCTOR_DATA_DIR") / "batch"


def ids_of(content: bytes) -> list[str]:
    return [json.loads(line)["custom_id"] for line in content.splitlines()]


def chats(count: int) -> bytes:
    lines = [
        {
            "custom_id": f"request-{number}",
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": {"model": "test-model", "messages": [{"role": "user", "content": f"KEY=w{number}"}]},
        }
        for number in range(count)
    ]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


async def started(client: AsyncOpenAI, content: bytes) -> Batch:
    file = await client.files.create(file=("lines.jsonl", content), purpose="batch")
    return await client.batches.create(
        input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
    )


async def ended(client: AsyncOpenAI, batch_id: str) -> Batch:
    """As it is in the end; it was in no state again that it had left."""
    seen: list[str] = []
    async with asyncio.timeout(LIMIT_SECONDS):
        while True:
            batch = await client.batches.retrieve(batch_id)
            if batch.status not in seen[-1:]:
                assert batch.status not in seen
                seen.append(batch.status)
            if batch.status in FINAL:
                return batch


async def lines_of(client: AsyncOpenAI, file_id: str | None) -> list[dict[str, Any]]:
    if file_id is None:
        return []
    content = (await client.files.content(file_id)).content
    assert content.endswith(b"\n")
    return [json.loads(line) for line in content.splitlines()]


async def test_script_of_the_protocol_works_unchanged(stack: StackHarness) -> None:
    base_url = f"http://{stack.stack.gateway_http}/v1"
    content, batch = await asyncio.to_thread(script, base_url, batch_folder() / "batch_50.jsonl")
    given = [json.loads(line) for line in (batch_folder() / "batch_50.jsonl").read_bytes().splitlines()]
    answered = [json.loads(line) for line in content.splitlines()]
    assert [line["custom_id"] for line in answered] == [line["custom_id"] for line in given]
    assert len({line["id"] for line in answered}) == len(answered)
    for line in answered:
        assert set(line) == {"id", "custom_id", "response", "error"}
        assert (line["response"]["status_code"], line["error"]) == (200, None)
        reported = ChatCompletion.model_validate(line["response"]["body"], strict=True)
        assert reported.choices[0].message.content
        assert reported.usage
    assert batch.usage
    used = sum(line["response"]["body"]["usage"]["total_tokens"] for line in answered)
    assert (batch.model, batch.usage.total_tokens) == (MODEL, used)


def script(base_url: str, path: Path) -> tuple[bytes, Batch]:
    """As the documentation of the protocol has it."""
    with OpenAI(base_url=base_url, api_key="anything") as client, path.open("rb") as lines:
        file = client.files.create(file=lines, purpose="batch")
        assert client.files.content(file.id).content == path.read_bytes()
        batch = client.batches.create(
            input_file_id=file.id,
            endpoint="/v1/chat/completions",
            completion_window="24h",
            metadata={"description": "nightly"},
        )
        assert batch.id in [listed.id for listed in client.batches.list(limit=2)]
        while batch.status not in FINAL:
            batch = client.batches.retrieve(batch.id)
        assert batch.status == "completed", batch
        assert (batch.metadata, batch.errors, batch.error_file_id) == ({"description": "nightly"}, None, None)
        assert batch.request_counts
        assert batch.request_counts.to_dict() == {"total": 50, "completed": 50, "failed": 0}
        moments = [batch.created_at, batch.in_progress_at, batch.finalizing_at, batch.completed_at]
        assert None not in moments
        assert moments == sorted(moments, key=lambda moment: moment or 0)
        assert batch.expires_at == batch.created_at + 24 * 3600
        assert batch.output_file_id
        output = client.files.retrieve(batch.output_file_id)
        content = client.files.content(output.id).content
        assert (output.purpose, output.bytes) == ("batch_output", len(content))
        assert output.id in [listed.id for listed in client.files.list(purpose="batch_output")]
        for file_id in (file.id, output.id):
            assert client.files.delete(file_id).deleted
        assert client.batches.retrieve(batch.id).status == "completed"
        return content, batch


async def test_lines_that_fail_are_in_the_error_file_and_nowhere_else(
    stack: StackHarness, client: AsyncOpenAI
) -> None:
    await stack.model_server.control(
        fault={"kind": "status", "status": 400, "share": 0.2, "message": "too clever"}
    )
    content = chats(100)
    batch = await ended(client, (await started(client, content)).id)
    assert batch.status == "completed"
    answers = await lines_of(client, batch.output_file_id)
    failures = await lines_of(client, batch.error_file_id)
    assert answers
    assert failures
    of_both = [line["custom_id"] for line in answers + failures]
    assert sorted(of_both) == sorted(ids_of(content))
    for lines in (answers, failures):
        positions = [ids_of(content).index(line["custom_id"]) for line in lines]
        assert positions == sorted(positions)
    for line in answers:
        number = line["custom_id"].removeprefix("request-")
        reported = line["response"]["body"]["choices"][0]["message"]["content"]
        assert reported == f"The answer is w{number}."
    assert all("too clever" in json.dumps(line) for line in failures)
    assert batch.request_counts
    counts = {"total": 100, "completed": len(answers), "failed": len(failures)}
    assert batch.request_counts.to_dict() == counts


async def test_cancelled_batch_keeps_what_was_answered(stack: StackHarness, client: AsyncOpenAI) -> None:
    await stack.model_server.control(latency_seconds=0.2)
    content = chats(2000)
    batch = await started(client, content)
    with pytest.raises(ConflictError) as refused:
        await client.files.delete(batch.input_file_id)
    assert refused.value.code == "file_in_use"

    async def has_answers() -> bool:
        counts = (await client.batches.retrieve(batch.id)).request_counts
        return counts is not None and counts.completed > 0

    await eventually(has_answers, "some lines are answered")
    cancelling = await client.batches.cancel(batch.id)
    assert cancelling.status in ("cancelling", "cancelled")
    assert cancelling.cancelling_at
    cancelled = await ended(client, batch.id)
    assert (cancelled.status, cancelled.cancelled_at is not None) == ("cancelled", True)
    answers = await lines_of(client, cancelled.output_file_id)
    left = await lines_of(client, cancelled.error_file_id)
    assert 0 < len(answers) < 2000
    assert sorted(line["custom_id"] for line in answers + left) == sorted(ids_of(content))
    assert {line["error"]["code"] for line in left} == {"batch_cancelled"}
    with pytest.raises(ConflictError) as refused:
        await client.batches.cancel(batch.id)
    assert refused.value.code == "batch_already_finished"
    assert (await client.files.delete(batch.input_file_id)).deleted


@pytest.mark.thorough
async def test_every_broken_file_fails_by_the_lines_that_are_wrong(client: AsyncOpenAI) -> None:
    for case in json.loads((batch_folder() / "broken/INDEX.json").read_text()):
        content = (batch_folder() / case["file"]).read_bytes()
        file = await client.files.create(file=(case["file"], content), purpose="batch")
        assert (await client.files.content(file.id)).content == content
        batch = await client.batches.create(
            input_file_id=file.id,
            endpoint="/v1/chat/completions",
            completion_window="1h",  # type: ignore[arg-type]  # its types know 24h only
        )
        if case["expect"] == "accept":
            assert file.status == "processed"
            batch = await ended(client, batch.id)
            assert batch.status == "completed", case["file"]
            assert len(await lines_of(client, batch.output_file_id)) == case["lines"]
            continue
        check_failed(case, file, batch)
        assert (await client.files.delete(file.id)).deleted


def check_failed(case: dict[str, Any], file: FileObject, batch: Batch) -> None:
    assert (file.status, batch.status, batch.failed_at is not None) == ("error", "failed", True), case["file"]
    assert batch.errors
    assert batch.errors.data
    lines = {error.line for error in batch.errors.data if error.line}
    assert lines <= set(case["bad_lines"]), case["file"]
    assert lines or not case["bad_lines"], case["file"]
    assert all(error.code and error.message for error in batch.errors.data)


async def test_endpoint_other_than_that_of_the_lines_fails_the_batch(client: AsyncOpenAI) -> None:
    file = await client.files.create(file=("lines.jsonl", chats(2)), purpose="batch")
    batch = await client.batches.create(
        input_file_id=file.id, endpoint="/v1/completions", completion_window="24h"
    )
    assert (batch.status, batch.errors is not None) == ("failed", True)


async def test_what_an_order_of_a_batch_says_wrong_is_named(client: AsyncOpenAI) -> None:
    file = await client.files.create(file=("lines.jsonl", chats(2)), purpose="batch")
    right = {"input_file_id": file.id, "endpoint": "/v1/chat/completions", "completion_window": "24h"}
    for param, value in (
        ("completion_window", "59m"),
        ("completion_window", "169h"),
        ("endpoint", "/v1/embeddings"),
        ("metadata", {f"k{number}": "v" for number in range(17)}),
        ("metadata", {"k": "v" * 513}),
    ):
        with pytest.raises(BadRequestError) as refused:
            await client.batches.create(**(right | {param: value}))  # type: ignore[arg-type]  # wrong on purpose
        assert refused.value.param == param
    with pytest.raises(NotFoundError) as missing:
        await client.batches.create(**(right | {"input_file_id": "file-x"}))  # type: ignore[arg-type]  # a dict of right ones
    assert missing.value.param == "input_file_id"


@pytest.mark.thorough
async def test_lists_have_everything_once_in_both_orders(client: AsyncOpenAI) -> None:
    sent = [
        (await client.files.create(file=(f"{n}.jsonl", chats(n)), purpose="batch")).id for n in range(1, 6)
    ]
    newest = [file.id async for file in client.files.list(limit=2)]
    assert newest[:5] == sent[::-1]
    assert len(set(newest)) == len(newest)
    assert [file.id async for file in client.files.list(limit=2, order="asc")] == newest[::-1]
    assert newest == [file.id for file in (await client.files.list()).data]
    batches = [(await started(client, chats(1))).id for _ in range(3)]
    assert [batch.id async for batch in client.batches.list(limit=1)][:3] == batches[::-1]


async def test_models_and_their_aliases_are_listed(client: AsyncOpenAI) -> None:
    owners = {model.id: model.owned_by async for model in client.models.list()}
    assert owners == {MODEL: "openai", "test-model": "openai"}
    assert (await client.models.retrieve(MODEL)).id == MODEL
