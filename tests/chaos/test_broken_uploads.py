"""Uploads that break by who sends them, what takes them, or where they go: nothing of them is left."""

import asyncio
import io
import json
import os
import random
import resource
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from proctor.v1 import run_pb2
from tests.chaos.faults.faulted_batch import batch_stack, lines_of
from tests.chaos.faults.faulted_run import FaultedRun
from tests.chaos.faults.stack_faults import kill
from tests.e2e.harness.entry_points import HttpAnswer, http
from tests.fakes.eventually import eventually
from tests.fakes.storage.s3_server import BUCKET, s3_server
from tests.fakes.thorough_cases import each_value_once, first_cases
from tests.harness.stack_harness import MODEL, StackHarness

pytestmark = pytest.mark.asyncio(loop_scope="module")

DATASETS = "/admin/datasets"
# By door: where a file is sent to, and where those that are kept are listed.
APIS = {"data set": (f"{DATASETS}/upload", DATASETS), "file": ("/v1/files", "/v1/files")}
MAX_BYTES = 1_000_000
GONE_LIMIT_SECONDS = 20.0
Break = Callable[["HalfUpload"], Awaitable[None]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack() -> AsyncIterator[StackHarness]:
    async with batch_stack() as stack:
        yield stack


@pytest.fixture(scope="module")
def content() -> bytes:
    """Some 45 MB that hardly pack, so that much is stored before the last line has come."""
    draw = random.Random(1)
    lines = (
        {
            "custom_id": f"r{number}",
            "method": "POST",
            "url": "/v1/completions",
            "body": {"model": "fake", "prompt": b64encode(draw.randbytes(800)).decode()},
        }
        for number in range(40_000)
    )
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


class HalfUpload:
    """Sends the first half of a file, and no more until it is let go on."""

    def __init__(self, stack: StackHarness, api: str, content: bytes) -> None:
        self._stack = stack
        self._api = api
        self._content = content
        self._may_go_on = asyncio.Event()
        self.task: asyncio.Task[HttpAnswer] = asyncio.ensure_future(self._send())

    def go_on(self) -> None:
        self._may_go_on.set()

    async def gone(self) -> None:
        """Its sender has gone away, or got the error."""
        self.task.cancel()
        _, hanging = await asyncio.wait([self.task], timeout=GONE_LIMIT_SECONDS)
        assert not hanging, "the upload does not end"
        if not self.task.cancelled():
            self.task.exception()

    async def _send(self) -> HttpAnswer:
        form = form_of(self._api, self._pieces(), "half.jsonl")
        return await http(self._stack, "POST", APIS[self._api][0], data=form)

    async def _pieces(self) -> AsyncIterator[bytes]:
        for half in (self._content[: len(self._content) // 2], self._content[len(self._content) // 2 :]):
            for start in range(0, len(half), 256 * 1024):
                yield half[start : start + 256 * 1024]
            await self._may_go_on.wait()


def form_of(api: str, content: object, name: str) -> aiohttp.FormData:
    form = aiohttp.FormData()
    if api == "file":
        form.add_field("purpose", "batch")
    form.add_field("file", content, filename=name, content_type="application/jsonl")
    return form


async def sent(stack: StackHarness, api: str, content: bytes, name: str = "whole.jsonl") -> HttpAnswer:
    return await http(stack, "POST", APIS[api][0], data=form_of(api, io.BytesIO(content), name))


def objects(stack: StackHarness) -> set[Path]:
    folder = stack.stack.options.state_dir / "objects"
    # A folder may vanish while it is read: os.walk passes over it, rglob does not.
    return {Path(root, name) for root, _, names in os.walk(folder) for name in names}


async def kept(stack: StackHarness, api: str) -> int:
    """How many there are."""
    answer = await http(stack, "GET", APIS[api][1])
    return len(answer.body["datasets" if api == "data set" else "data"])


async def client_gone(upload: HalfUpload) -> None:
    await upload.gone()


async def gateway_killed(stack: StackHarness, upload: HalfUpload) -> None:
    await kill(stack, "gateway")
    await upload.gone()


async def scheduler_killed(stack: StackHarness, upload: HalfUpload) -> None:
    """What is young may be of an upload that goes on, so it is made old; then the next leader sweeps it."""
    await kill(stack, "scheduler")
    upload.go_on()
    await asyncio.wait([upload.task], timeout=20)
    assert upload.task.done(), "the upload has no answer"
    assert upload.task.result().status == 503, upload.task.result()
    assert objects(stack)
    async with stack.database() as database:
        await database.execute("UPDATE scheduler.unreferenced_prefixes SET since = since - interval '1 day'")
    await kill(stack, "scheduler")


@pytest.mark.parametrize(("broken", "api"), each_value_once(("client", "gateway", "scheduler"), tuple(APIS)))
async def test_upload_that_is_cut_in_the_middle_leaves_nothing(
    stack: StackHarness, content: bytes, api: str, broken: str
) -> None:
    breaks: dict[str, Break] = {
        "client": client_gone,
        "gateway": partial(gateway_killed, stack),
        "scheduler": partial(scheduler_killed, stack),
    }
    children = stack.stack.children.values()
    await eventually(lambda: all(child.ready.is_set() for child in children), "the stack is up", 60)
    before, count = objects(stack), await kept(stack, api)
    upload = HalfUpload(stack, api, content)
    try:
        await eventually(lambda: objects(stack) > before, "the first of it lies in the store")
        await breaks[broken](upload)
    finally:
        await upload.gone()
    await eventually(lambda: objects(stack) == before, "what was stored is removed", 60)
    await eventually(lambda: all(child.ready.is_set() for child in children), "the stack is up again", 60)
    assert await kept(stack, api) == count


@first_cases(1, "api", APIS)
async def test_store_that_is_full_in_the_middle_is_reported_and_nothing_is_left(
    stack: StackHarness, content: bytes, api: str
) -> None:
    before, count = objects(stack), await kept(stack, api)
    scheduler = stack.stack.child("scheduler").pid or 0
    soft, hard = resource.prlimit(scheduler, resource.RLIMIT_FSIZE)
    resource.prlimit(scheduler, resource.RLIMIT_FSIZE, (MAX_BYTES, hard))
    try:
        answer = await sent(stack, api, content)
    finally:
        resource.prlimit(scheduler, resource.RLIMIT_FSIZE, (soft, hard))
    assert answer.status == 503, answer
    reported = answer.body["error"]["message"] if api == "file" else answer.body["detail"]
    assert reported.startswith("The object store cannot be used: ")
    assert reported.endswith(". Nothing was changed; check it, then try again.")
    assert str(stack.stack.options.state_dir) not in reported
    assert (objects(stack), await kept(stack, api)) == (before, count)
    assert (await sent(stack, api, content)).status == 200


@pytest.mark.thorough
async def test_bucket_that_fails_in_the_middle_is_reported_and_nothing_is_left(content: bytes) -> None:
    with s3_server() as bucket:
        environment = {
            "PROCTOR_SCHEDULER_OBJECT_STORE": f"s3://{BUCKET}/below",
            "AWS_ENDPOINT_URL": bucket.endpoint,
            "AWS_ACCESS_KEY_ID": "any",
            "AWS_SECRET_ACCESS_KEY": "any",
            "AWS_REGION": "us-east-1",
        }
        async with batch_stack(environment) as stack:
            for api in APIS:
                bucket.puts_left = 1
                answer = await sent(stack, api, content)
                assert answer.status == 503, answer
                assert answer.body["detail" if api == "data set" else "error"]
                assert bucket.contents == {}
                bucket.puts_left = None
                assert (await sent(stack, api, content)).status == 200
                bucket.contents.clear()


@first_cases(1, "api", APIS)
async def test_two_uploads_of_one_name_at_once_are_both_kept_and_lie_there_once(
    stack: StackHarness, api: str
) -> None:
    before = objects(stack)
    rows = lines_of(range(1_000))
    answers = await asyncio.gather(*(sent(stack, api, rows, "same.jsonl") for _ in range(2)))
    assert [answer.status for answer in answers] == [200, 200], answers
    ids = {answer.body["dataset_id" if api == "data set" else "id"] for answer in answers}
    assert len(ids) == 2
    new = objects(stack) - before
    assert len({path.parent for path in new if "datasets" in path.parts}) == 1
    for gone in ids:
        assert (await http(stack, "DELETE", f"{APIS[api][1]}/{gone}")).status == 200
    await eventually(lambda: objects(stack) == before, "all of it is gone")


async def test_what_a_run_uses_stays_until_it_is_over(stack: StackHarness) -> None:
    uploaded = await sent(stack, "data set", lines_of(range(2_000)))
    dataset_id = uploaded.body["dataset_id"]
    order = run_pb2.RunOrder(project_id=1, dataset_id=dataset_id, model=MODEL, line_models=["test-model"])
    run = await FaultedRun.start(stack, order)
    benchmark = f"/admin/benchmarks/bm_{run.run_id.replace('-', '')}"

    async def delete_both() -> None:
        for path, reason in ((f"{DATASETS}/{dataset_id}", "DATASET_IN_USE"), (benchmark, "RUN_STILL_ACTIVE")):
            answer = await http(stack, "DELETE", path)
            assert (answer.status, answer.body["reason"]) == (409, reason), answer

    await run.strike_at(0.2, delete_both)
    assert (await run.ended()).state == run_pb2.RUN_STATE_COMPLETED
    for path in (f"{DATASETS}/{dataset_id}", benchmark):
        assert (await http(stack, "DELETE", path)).status == 200
