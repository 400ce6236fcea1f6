"""Tasks for rollouts in the object store: stored once by digest, whole or not at all, dropped unused."""

import asyncio
import gzip
import hashlib
import os
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
import pytest_asyncio

from proctor.v1 import queue_service_pb2 as queue_pb2
from proctor.v1 import rollout_service_pb2
from proctor.v1 import storage_service_pb2 as storage_pb2
from proctor.v1 import suite_service_pb2 as suite_pb2
from proctor.v1.work_messages_pb2 import ReadBundleRequest, ReadBundleResponse
from proctor.values import messaging
from services.common.clock import SystemClock
from services.common.errors import ErrorKind
from services.common.nats.connection import connect_nats
from services.common.objects.obstore_objects import ObstoreObjects
from services.common.postgres import PostgresSession, connect_pool
from services.scheduler.limits.postgres import PostgresLimits
from services.scheduler.postgres import QUERIES, SCHEMA
from services.scheduler.uploads.delete_uploads import COLLECT_SECONDS, CollectUnreferencedObjects
from services.scheduler.uploads.postgres import PostgresDatasets
from services.scheduler.uploads.quotas.postgres import PostgresStorage
from services.scheduler.uploads.task_sets.delete_unused_tasks import DeleteUnusedTasks
from services.scheduler.uploads.task_sets.find_tasks import PART_BYTES
from services.scheduler.uploads.task_sets.postgres import PostgresTaskSets
from tests.fakes.callers import OPERATOR_METADATA
from tests.fakes.scheduler.batch_harness import BatchHarness, batch_harness, refused
from tests.harness.rollout_orders import archive
from tests.harness.rollout_tasks import harbor_folder

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[BatchHarness]:
    async with batch_harness(tmp_path_factory.mktemp("scheduler"), max_tasks_bytes=8_000_000) as opened:
        yield opened


@pytest.fixture
def user() -> str:
    return f"user-{uuid4().hex}"


def tasks_in(folder: Path, count: int = 1, extra: bytes = b"") -> bytes:
    """Each archive has a file of its own, so that no other test's is equal."""
    for number in range(count):
        task = harbor_folder(folder / f"task-{number}")
        (task / "environment" / "salt").write_bytes(extra or os.urandom(16))
        (task / "environment" / "Dockerfile").write_text("FROM x\nWORKDIR /app\nCOPY doubling.py salt ./\n")
    return archive(folder)


async def upload(
    harness: BatchHarness, content: bytes, user: str, *, is_whole: bool = True
) -> rollout_service_pb2.UploadTasksResponse:
    async def chunks() -> AsyncIterator[rollout_service_pb2.UploadTasksRequest]:
        yield rollout_service_pb2.UploadTasksRequest(
            header=rollout_service_pb2.TasksHeader(name="mine.tar.gz", user=user)
        )
        for start in range(0, len(content), 1024 * 1024):
            yield rollout_service_pb2.UploadTasksRequest(content=content[start : start + 1024 * 1024])
        if is_whole:
            yield rollout_service_pb2.UploadTasksRequest(end=rollout_service_pb2.TasksEnd())

    return await harness.rollouts.UploadTasks(chunks())


def order(digest: str, user: str, **changes: object) -> rollout_service_pb2.SubmitRolloutsRequest:
    fields = {"suite": f"of-{user}", "tasks_digest": digest, "models": ["openai/m"], "user": user, **changes}
    return rollout_service_pb2.SubmitRolloutsRequest(**fields)  # type: ignore[arg-type]  # fields of a message


def stored(harness: BatchHarness) -> dict[str, int]:
    return {
        name: (harness.folder / name).stat().st_size
        for name in harness.objects()
        if name.startswith("tasks/")
    }


async def used(harness: BatchHarness, user: str) -> tuple[int, int]:
    found = await harness.storage.GetStorage(storage_pb2.GetStorageRequest(user=user))
    of_tasks = [share.used for share in found.shares if share.kind == "tasks"]
    return sum(each.bytes for each in of_tasks), sum(each.files for each in of_tasks)


async def collect(harness: BatchHarness, later: timedelta) -> None:
    """What the leader does, as if `later`."""

    class Later(SystemClock):
        def now(self) -> datetime:
            return super().now() + later

    pool = await connect_pool(harness.postgres, schema=SCHEMA, max_size=2)
    try:
        session = PostgresSession(pool=pool, queries=QUERIES)
        storage = PostgresStorage(session, limits=PostgresLimits.__new__(PostgresLimits))
        sets = PostgresTaskSets(session, storage=storage, clock=Later())
        await DeleteUnusedTasks(sets, Later()).delete()
        objects = ObstoreObjects(harness.folder.as_uri())
        datasets = PostgresDatasets.__new__(PostgresDatasets)
        datasets._session = session  # the only part that is needed
        await CollectUnreferencedObjects(datasets, objects, Later(), -COLLECT_SECONDS).collect()
    finally:
        await pool.close()


async def test_equal_tasks_are_stored_once_and_count_for_each_user(
    harness: BatchHarness, user: str, tmp_path: Path
) -> None:
    before = stored(harness)
    content = tasks_in(tmp_path, 2)
    first = await upload(harness, content, user)
    assert list(first.task_ids) == ["task-0", "task-1"]
    objects = {name: size for name, size in stored(harness).items() if name not in before}
    # The list; for each task a workspace and the folder of its image; tests and solutions, which are equal.
    assert len(objects) == 1 + 2 + 2 + 2
    assert first.stored_bytes == sum(objects.values())
    again, of_other = await asyncio.gather(
        upload(harness, content, user), upload(harness, content, f"{user}-2")
    )
    assert {first.tasks_digest} == {again.tasks_digest, of_other.tasks_digest}
    assert stored(harness).keys() == before.keys() | objects.keys()
    assert await used(harness, user) == await used(harness, f"{user}-2") == (first.stored_bytes, 1)


async def test_a_digest_alone_opens_no_tasks_of_others(
    harness: BatchHarness, user: str, tmp_path: Path
) -> None:
    content = tasks_in(tmp_path)
    uploaded = await upload(harness, content, user)
    of_nobody = "0" * 64
    refusals = []
    for digest in (uploaded.tasks_digest, of_nobody):
        async with refused() as reported:
            await harness.rollouts.SubmitRollouts(order(digest, f"{user}-2"))
        refusals.append((reported[0].kind, reported[0].reason, reported[0].message.replace(digest, "")))
    assert refusals[0] == refusals[1]
    assert refusals[0][:2] == (ErrorKind.NOT_FOUND, "TASKS_NOT_FOUND")
    assert await used(harness, f"{user}-2") == (0, 0)
    # Who has the tasks uploads them, and orders.
    again = await upload(harness, content, f"{user}-2")
    assert again == uploaded
    await harness.rollouts.SubmitRollouts(order(again.tasks_digest, f"{user}-2"))


async def test_an_order_names_tasks_by_digest_and_keeps_them_as_long_as_its_suite(
    harness: BatchHarness, user: str, tmp_path: Path
) -> None:
    before = stored(harness)
    uploaded = await upload(harness, tasks_in(tmp_path), user)
    await harness.rollouts.SubmitRollouts(order(uploaded.tasks_digest, user))
    other = order(uploaded.tasks_digest, user)
    other.agent.max_steps = 7
    assert (await harness.rollouts.SubmitRollouts(other)).suite.endswith("@2")
    # Two suites of one set: it counts once.
    assert await used(harness, user) == (uploaded.stored_bytes, 1)
    await collect(harness, timedelta(days=3))
    assert await used(harness, user) == (uploaded.stored_bytes, 1)
    await harness.execute("DELETE FROM runs WHERE benchmark = $1", f"of-{user}")
    for number in (1, 2):
        request = suite_pb2.DeleteSuiteRequest(suite=f"of-{user}", version=number)
        await harness.suites.DeleteSuite(request, metadata=OPERATOR_METADATA)
    await collect(harness, timedelta(days=3))
    assert await used(harness, user) == (0, 0)
    assert not [name for name in stored(harness) if name not in before]
    async with refused() as reported:
        await harness.rollouts.SubmitRollouts(order(uploaded.tasks_digest, user))
    assert (reported[0].kind, reported[0].reason) == (ErrorKind.NOT_FOUND, "TASKS_NOT_FOUND")


async def test_a_worker_reads_files_in_parts_by_their_digest_only(
    harness: BatchHarness, user: str, tmp_path: Path
) -> None:
    before = stored(harness)
    await upload(harness, tasks_in(tmp_path, extra=os.urandom(PART_BYTES + 5)), user)
    sizes = {name: size for name, size in stored(harness).items() if name not in before}
    name, size = max(sizes.items(), key=lambda each: each[1])
    digest = name.rpartition("/")[2]
    connection = await connect_nats(harness.nats, "worker")

    async def ask(**wanted: object) -> ReadBundleResponse:
        request = ReadBundleRequest(**wanted)  # type: ignore[arg-type]  # fields of a message
        reply = await connection.request(
            messaging.bundle_subject("remote"), request.SerializeToString(), timeout=20
        )
        return ReadBundleResponse.FromString(reply.data)

    try:
        first = await ask(digest=digest)
        rest = await ask(digest=digest, first_byte=len(first.content))
        assert (len(first.content), len(first.content) + len(rest.content)) == (PART_BYTES, size)
        assert hashlib.sha256(first.content + rest.content).hexdigest() == digest
        for unknown in ("0" * 64, "../../files", "", "tasks"):
            assert (await ask(digest=unknown)).is_missing
    finally:
        await connection.close()


async def test_an_upload_that_breaks_off_or_is_refused_leaves_nothing(
    harness: BatchHarness, user: str, tmp_path: Path
) -> None:
    before = stored(harness)
    content = tasks_in(tmp_path)
    for is_whole, broken, says in (
        (False, content, "in the middle"),
        (True, content[:-20], "not a .tar.gz file"),
        (True, gzip.compress(b"x" * 5000, mtime=0), "not a .tar.gz file"),
        (True, os.urandom(8_000_001), "more than 8,000,000 bytes"),
    ):
        async with refused() as reported:
            await upload(harness, broken, user, is_whole=is_whole)
        assert reported[0].kind is ErrorKind.INVALID
        assert says in reported[0].message
    (tmp_path / "task-0" / "instruction.md").unlink()
    async with refused() as reported:
        await upload(harness, archive(tmp_path), user)
    assert (reported[0].reason, reported[0].facts["task"]) == ("INVALID_TASK_FOLDER", "task-0")
    assert stored(harness) == before
    assert await used(harness, user) == (0, 0)


async def test_tasks_that_do_not_fit_the_quota_are_refused_whole(
    harness: BatchHarness, user: str, tmp_path: Path
) -> None:
    before = stored(harness)
    limits = queue_pb2.SetLimitsRequest()
    limits.limits.max_stored_bytes_per_user = 500
    await harness.queue.SetLimits(limits, metadata=OPERATOR_METADATA)
    try:
        async with refused() as reported:
            await upload(harness, tasks_in(tmp_path), user)
    finally:
        reset = queue_pb2.SetLimitsRequest(reset=["max_stored_bytes_per_user"])
        await harness.queue.SetLimits(reset, metadata=OPERATOR_METADATA)
    assert reported[0].reason == "STORAGE_QUOTA_EXCEEDED"
    assert stored(harness) == before


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"tasks": b"x"}, "give one of them"),
        ({"tasks_digest": ""}, "give one of them"),
        ({"overrides_json": {"a": "{}"}}, "belongs to the upload"),
        ({"tasks_digest": "../x"}, "There are no tasks"),
        ({"tasks_digest": "", "tasks": bytes(2 * 1024 * 1024 + 1)}, "Upload them"),
    ],
)
async def test_what_is_wrong_with_an_order_is_one_sentence(
    harness: BatchHarness, user: str, changes: dict[str, object], says: str
) -> None:
    async with refused() as reported:
        await harness.rollouts.SubmitRollouts(order("0" * 64, user, **changes))
    assert says in reported[0].message
