"""Storage of users is limited, exactly: under concurrent uploads, after deletions and when files expire."""

import asyncio
import os
from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import Any
from uuid import uuid4

import grpc
import pytest
import pytest_asyncio

from proctor.v1 import dataset_service_pb2 as dataset_pb2
from proctor.v1 import file_service_pb2 as file_pb2
from proctor.v1 import queue_service_pb2 as queue_pb2
from proctor.v1 import storage_service_pb2 as storage_pb2
from proctor.v1 import suite_service_pb2 as suite_pb2
from services.common.errors import ErrorKind, RemoteError
from services.common.grpc.errors import remote_error
from tests.fakes.callers import OPERATOR_METADATA
from tests.fakes.scheduler.batch_harness import (
    ERRORS,
    OUTPUT,
    BatchHarness,
    batch_harness,
    end_run,
    lines,
    recorded,
    refused,
)
from tests.fakes.storage.checked_files import batch_line, jsonl
from tests.fakes.storage.uploads import cut, upload
from tests.fakes.thorough_cases import first_cases

pytestmark = pytest.mark.asyncio(loop_scope="module")

LIMITS = (
    "max_stored_bytes_per_user",
    "max_stored_files_per_user",
    "max_stored_rows_per_user",
    "max_stored_bytes_per_project",
)
IN_PROJECT = "PROJECT_STORAGE_QUOTA_EXCEEDED"
SUITE = """\
task: {name}
version: "1"
dataset: {{file: rows.jsonl}}
output_type: generate_until
doc_to_text: "{{{{q}}}}?"
doc_to_target: "{{{{a}}}}"
metric_list: [{{metric: exact_match}}]
"""
ARTIFACT = """\
INSERT INTO rollout_artifacts (
    run_id, sample, rollout, execution, name, part, username, size_bytes, stored_at, is_stored
)
VALUES ($1, 0, 0, 'first', 'diff.patch', 0, $2, 1000, now(), true)
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[BatchHarness]:
    async with batch_harness(tmp_path_factory.mktemp("scheduler")) as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="module")
async def user(harness: BatchHarness) -> AsyncIterator[str]:
    """A user who stores nothing yet."""
    yield f"user-{uuid4().hex}"
    await set_limits(harness, LIMITS)


async def set_limits(harness: BatchHarness, reset: Sequence[str] = (), **limits: int) -> None:
    request = queue_pb2.SetLimitsRequest(reset=reset)
    for name, limit in limits.items():
        setattr(request.limits, name, limit)
    await harness.queue.SetLimits(request, metadata=OPERATOR_METADATA)


async def stored_by(harness: BatchHarness, user: str) -> storage_pb2.GetStorageResponse:
    return await harness.storage.GetStorage(storage_pb2.GetStorageRequest(user=user))


async def used(harness: BatchHarness, user: str) -> tuple[int, int, int]:
    found = (await stored_by(harness, user)).used
    return found.bytes, found.files, found.rows


async def add_dataset(harness: BatchHarness, user: str, content: bytes, **header: Any) -> str:
    added = await upload(harness.datasets, cut(content), user=user, **header)
    return added.dataset.dataset_id


async def delete_dataset(harness: BatchHarness, dataset_id: str) -> None:
    request = dataset_pb2.DeleteDatasetRequest(dataset_id=dataset_id)
    await harness.datasets.DeleteDataset(request, metadata=OPERATOR_METADATA)


def random_lines(count: int, salt: str = "r") -> bytes:
    """What hardly compresses, some 2 kB a line."""
    body = {"model": "m", "messages": [{"role": "user", "content": ""}]}

    def line(number: int) -> dict[str, object]:
        content = {"role": "user", "content": os.urandom(1000).hex()}
        return batch_line(custom_id=f"{salt}{number}", body={**body, "messages": [content]})

    return jsonl(line(number) for number in range(count))


def bytes_of(harness: BatchHarness, *parts: str) -> int:
    """In the object store."""
    return sum(
        path.stat().st_size
        for path in harness.folder.rglob("*")
        if path.is_file() and any(part in str(path) for part in parts)
    )


async def refusal_of(
    call: Coroutine[Any, Any, object], reason: str = "STORAGE_QUOTA_EXCEEDED"
) -> RemoteError:
    async with refused() as reported:
        await call
    [error] = reported
    assert (error.kind, error.reason) == (ErrorKind.EXHAUSTED, reason)
    return error


def new_project() -> int:
    """A project that stores nothing yet, of 48 bits."""
    return uuid4().int >> 80


async def test_use_is_what_lies_in_the_object_store_and_ends_with_a_deletion(
    harness: BatchHarness, user: str
) -> None:
    dataset_id = await add_dataset(harness, user, random_lines(20))
    file = await harness.upload(random_lines(30), user=user)
    expected = bytes_of(harness, dataset_id, file.file_id)
    assert await used(harness, user) == (expected, 2, 50)
    shares = {share.kind: share.used.rows for share in (await stored_by(harness, user)).shares}
    assert shares == {"datasets": 20, "files": 30}
    await delete_dataset(harness, dataset_id)
    assert await used(harness, user) == (bytes_of(harness, file.file_id), 1, 30)
    await harness.delete(file.file_id)
    assert await used(harness, user) == (0, 0, 0)


async def test_upload_that_does_not_fit_is_refused_in_a_sentence_and_nothing_of_it_is_kept(
    harness: BatchHarness, user: str
) -> None:
    await add_dataset(harness, user, random_lines(3))
    kept, before = await used(harness, user), harness.objects()
    await set_limits(harness, max_stored_rows_per_user=5)
    error = await refusal_of(add_dataset(harness, user, random_lines(3)))
    expected = f"{user} stores 3 of 5 rows, and 3 more do not fit. Delete some or ask an operator."
    assert error.message == expected
    await refusal_of(harness.upload(random_lines(3), user=user))
    assert (await used(harness, user), harness.objects()) == (kept, before)
    await add_dataset(harness, user, random_lines(2))
    # The limit is of each user.
    await add_dataset(harness, f"{user}-2", random_lines(5))


async def test_large_upload_is_refused_before_its_end(harness: BatchHarness, user: str) -> None:
    before = harness.objects()
    await set_limits(harness, max_stored_bytes_per_user=100_000)
    sent = 0

    def pieces() -> Any:
        nonlocal sent
        for number in range(200):
            sent += 1
            yield random_lines(100, f"{number}-")

    error = await refusal_of(upload(harness.datasets, pieces(), user=user))
    assert error.facts["unit"] == "bytes"
    assert sent < 100
    await refusal_of(harness.upload(random_lines(500), user=user))
    assert harness.objects() == before


@first_cases(1, ("files", "rows"), [(3, 1000), (1000, 6)])
async def test_concurrent_uploads_do_not_exceed_a_limit(
    harness: BatchHarness, user: str, files: int, rows: int
) -> None:
    await set_limits(harness, max_stored_files_per_user=files, max_stored_rows_per_user=rows)

    async def try_one(number: int) -> bool:
        content = lines(2, f"{user}-{number}")
        adding = harness.upload(content, user=user) if number % 2 else add_dataset(harness, user, content)
        try:
            await adding
        except grpc.aio.AioRpcError as error:
            refusals.append(remote_error(error).reason)
            return False
        return True

    refusals: list[str] = []
    taken = [await asyncio.gather(*(try_one(4 * batch + one) for one in range(4))) for batch in range(3)]
    assert sum(map(sum, taken)) == 3
    assert refusals == ["STORAGE_QUOTA_EXCEEDED"] * 9
    assert (await used(harness, user))[1:] == (3, 6)


async def test_repeated_upload_is_no_second_one(harness: BatchHarness, user: str) -> None:
    await set_limits(harness, max_stored_files_per_user=1)
    content, request_id = lines(2, user), str(uuid4())
    first = await add_dataset(harness, user, content, request_id=request_id)
    error = await refusal_of(add_dataset(harness, user, content))
    assert (error.facts["used"], error.facts["limit"], error.facts["unit"]) == ("1", "1", "files")
    assert await used(harness, user) == (bytes_of(harness, first), 1, 2)


async def test_equal_contents_count_for_each_data_set(harness: BatchHarness, user: str) -> None:
    content = lines(2, user)
    first, second = await add_dataset(harness, user, content), await add_dataset(harness, user, content)
    once = bytes_of(harness, first, second)
    assert await used(harness, user) == (2 * once, 2, 4)
    await delete_dataset(harness, first)
    assert await used(harness, user) == (once, 1, 2)


async def test_file_counts_until_it_expires(harness: BatchHarness, user: str) -> None:
    file = await harness.upload(lines(2, user), user=user, expires_after_seconds=3600)
    await set_limits(harness, max_stored_files_per_user=1)
    await refusal_of(harness.upload(lines(2, f"{user}-2"), user=user))
    ended = "UPDATE files SET expires_at = now() - interval '1 second' WHERE file_id = $1"
    await harness.execute(ended, file.file_id)
    assert await used(harness, user) == (0, 0, 0)
    await harness.upload(lines(2, f"{user}-2"), user=user)


async def test_files_of_a_batch_are_written_beyond_the_limit_and_then_no_batch_is_taken(
    harness: BatchHarness, user: str
) -> None:
    batch = await created_by(harness, user)
    recorded(harness, batch)
    await set_limits(harness, max_stored_files_per_user=2)
    await end_run(harness, batch)
    done = await harness.reaches(batch.batch_id, "completed")
    assert done.output_file_id
    shares = {share.kind: share.used for share in (await stored_by(harness, user)).shares}
    written = shares["batch_output"]
    assert (written.files, written.bytes) == (2, len(b"".join(OUTPUT)) + len(b"".join(ERRORS)))
    error = await refusal_of(harness.create(batch.input_file_id, user=user))
    assert (error.facts["used"], error.facts["limit"]) == ("3", "2")


async def created_by(harness: BatchHarness, user: str) -> Any:
    file = await harness.upload(lines(3, uuid4().hex), user=user)
    return await harness.create(file.file_id, user=user)


async def test_versions_of_suites_count(harness: BatchHarness, user: str) -> None:
    name = f"own{uuid4().hex}"
    rows = jsonl([{"q": "1+1", "a": "2"}])

    async def add(text: str) -> suite_pb2.AddSuiteResponse:
        document = suite_pb2.SuiteDocument(text=text, file_name="own.yaml", files={"rows.jsonl": rows})
        return await harness.suites.AddSuite(suite_pb2.AddSuiteRequest(document=document, user=user))

    text = SUITE.format(name=name)
    await add(text)
    assert await used(harness, user) == (len(text) + len(rows), 1, 0)
    await set_limits(harness, max_stored_files_per_user=1)
    # The same content is the same version.
    await add(text)
    await refusal_of(add(f"{text}\n# another"))
    assert await used(harness, user) == (len(text) + len(rows), 1, 0)


async def test_lowered_limit_deletes_nothing_and_takes_nothing_more(harness: BatchHarness, user: str) -> None:
    file = await harness.upload(lines(2, user), user=user)
    await add_dataset(harness, user, lines(1, user))
    await set_limits(harness, max_stored_files_per_user=1)
    assert (await harness.files.GetFile(file_pb2.GetFileRequest(file_id=file.file_id))).file == file
    await refusal_of(harness.upload(lines(1, f"{user}-2"), user=user))
    assert (await used(harness, user))[1] == 2
    assert (await stored_by(harness, user)).limit.files == 1


async def test_users_together_store_no_more_than_the_limit_of_their_project(
    harness: BatchHarness, user: str
) -> None:
    """The limit has room for the first data set, and for half of another one."""
    project_id, other = new_project(), f"{user}-2"
    first = await add_dataset(harness, user, random_lines(20), project_id=project_id)
    stored = bytes_of(harness, first)
    await set_limits(harness, max_stored_bytes_per_project=stored * 3 // 2)
    before = harness.objects()
    content = random_lines(20)
    error = await refusal_of(add_dataset(harness, other, content, project_id=project_id), IN_PROJECT)
    assert (error.facts["project_id"], error.facts["used"]) == (str(project_id), str(stored))
    await refusal_of(harness.upload(content, user=other, project_id=project_id), IN_PROJECT)
    assert (await used(harness, other), harness.objects()) == ((0, 0, 0), before)
    # Other projects have limits of their own, and what is of no project has none.
    await add_dataset(harness, other, content, project_id=new_project())
    await add_dataset(harness, other, content)
    await delete_dataset(harness, first)
    await add_dataset(harness, other, content, project_id=project_id)


async def test_concurrent_uploads_do_not_exceed_the_limit_of_a_project(
    harness: BatchHarness, user: str
) -> None:
    project_id, content = new_project(), random_lines(20)
    stored = bytes_of(harness, await add_dataset(harness, user, content))
    await set_limits(harness, max_stored_bytes_per_project=stored * 5 // 2)

    async def try_one(number: int) -> bool:
        try:
            await add_dataset(harness, f"{user}-{number}", content, project_id=project_id)
        except grpc.aio.AioRpcError as error:
            refusals.append(remote_error(error).reason)
            return False
        return True

    refusals: list[str] = []
    assert sum(await asyncio.gather(*map(try_one, range(5)))) == 2
    assert refusals == [IN_PROJECT] * 3


async def test_batches_artifacts_and_suites_count_towards_their_project(
    harness: BatchHarness, user: str
) -> None:
    project_id = new_project()
    file = await harness.upload(lines(3, user), user=user, project_id=project_id)
    batch = await harness.create(file.file_id, user=user)
    recorded(harness, batch)
    await end_run(harness, batch)
    done = await harness.reaches(batch.batch_id, "completed")
    await harness.execute(ARTIFACT, batch.run_id, user)
    stored = bytes_of(harness, file.file_id, done.output_file_id, done.error_file_id) + 1000
    await set_limits(harness, max_stored_bytes_per_project=stored)
    text = SUITE.format(name=f"own{uuid4().hex}")
    files = {"rows.jsonl": jsonl([{"q": "1+1", "a": "2"}])}
    document = suite_pb2.SuiteDocument(text=text, file_name="own.yaml", files=files)
    request = suite_pb2.AddSuiteRequest(document=document, user=user, project_id=project_id)

    async def add_suite() -> None:
        await harness.suites.AddSuite(request)

    for adding in (add_suite(), harness.create(file.file_id, user=user)):
        error = await refusal_of(adding, IN_PROJECT)
        assert error.facts["used"] == str(stored)
