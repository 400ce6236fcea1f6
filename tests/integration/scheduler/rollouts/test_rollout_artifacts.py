"""Artifacts from workers: only of rollouts that were sent to them, counted, and gone with their run."""

from collections.abc import AsyncIterator
from uuid import uuid4

import grpc
import pytest
import pytest_asyncio
from nats.aio.client import Client

from proctor.v1 import artifact_service_pb2 as artifact_pb2
from proctor.v1 import queue_service_pb2 as queue_pb2
from proctor.v1 import storage_service_pb2 as storage_pb2
from proctor.v1.work_messages_pb2 import PutArtifactRequest, PutArtifactResponse
from proctor.values import messaging
from proctor.wire.proofs import DispatchedShard
from services.common.clock import SystemClock
from services.common.nats.connection import connect_nats
from services.common.postgres import PostgresSession, connect_pool
from services.scheduler.postgres import QUERIES, SCHEMA
from services.scheduler.rollouts.artifacts.artifact import MAX_EXECUTIONS
from services.scheduler.rollouts.artifacts.postgres import PostgresArtifacts
from tests.fakes.callers import OPERATOR_METADATA
from tests.fakes.scheduler.batch_harness import BatchHarness, batch_harness, created, lines
from tests.fakes.thorough_cases import first_cases

pytestmark = pytest.mark.asyncio(loop_scope="module")

KEY = "the scheduler's own"
EXECUTION = uuid4().hex


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[BatchHarness]:
    async with batch_harness(tmp_path_factory.mktemp("scheduler"), dispatch_proof_key=KEY) as opened:
        yield opened


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def connection(harness: BatchHarness) -> AsyncIterator[Client]:
    connection = await connect_nats(harness.nats, "worker")
    yield connection
    await connection.close()


@pytest_asyncio.fixture(loop_scope="module")
async def run_id(harness: BatchHarness) -> str:
    """A run that is there; what it runs over is of no matter here."""
    return (await created(harness)).run_id


def request(run_id: str, key: str = KEY, **changes: object) -> PutArtifactRequest:
    dispatched = DispatchedShard(run_id, 1, 7, 2, 1, (range(3, 5),))
    fields = {
        "run_id": run_id,
        "epoch": 1,
        "proof": dispatched.proof(key),
        "sample": 4,
        "execution": EXECUTION,
        "name": "diff.patch",
        "content": b"diff",
        **changes,
    }
    return PutArtifactRequest(**fields)  # type: ignore[arg-type]  # fields of a message


async def put(connection: Client, sent: PutArtifactRequest) -> PutArtifactResponse:
    subject = messaging.artifact_subject("remote")
    reply = await connection.request(subject, sent.SerializeToString(), timeout=20)
    return PutArtifactResponse.FromString(reply.data)


async def listed(harness: BatchHarness, run_id: str, rollout: int = 1) -> list[artifact_pb2.Artifact]:
    wanted = artifact_pb2.ListArtifactsRequest(run_id=run_id, sample=4, rollout=rollout)
    return list((await harness.artifacts.ListArtifacts(wanted)).artifacts)


async def used(harness: BatchHarness) -> int:
    found = await harness.storage.GetStorage(storage_pb2.GetStorageRequest(user="ann"))
    return sum(share.used.bytes for share in found.shares if share.kind == "artifacts")


@first_cases(
    3,
    "changes",
    [
        {"key": "another"},
        {"sample": 5},
        {"epoch": 2},
        {"name": "../../datasets/x"},
        {"execution": "../x"},
        {"part": 16},
        {"part": -1},
        {"content": bytes(1024 * 1024 + 1)},
        {"run_id": "no run"},
    ],
)
async def test_what_a_worker_was_not_sent_is_not_stored(
    harness: BatchHarness, connection: Client, run_id: str, changes: dict[str, object]
) -> None:
    before = harness.objects()
    answer = await put(connection, request(**{"run_id": run_id, **changes}))  # type: ignore[arg-type]  # fields of a message
    assert answer.is_refused
    assert answer.problem
    assert harness.objects() == before


async def test_artifacts_count_are_read_and_go_with_their_run(
    harness: BatchHarness, connection: Client, run_id: str
) -> None:
    before = await used(harness)
    for part, content in enumerate((b"first ", b"second", b"third")):
        # Sent twice, as after a lost answer.
        for _ in range(2):
            answer = await put(connection, request(run_id, part=part, content=content))
            assert not answer.problem
    [artifact] = await listed(harness, run_id)
    assert (artifact.execution, artifact.name, artifact.size_bytes, artifact.parts) == (
        EXECUTION,
        "diff.patch",
        17,
        3,
    )
    assert await listed(harness, run_id, rollout=0) == []
    assert await used(harness) == before + 17
    wanted = artifact_pb2.ReadArtifactRequest(
        run_id=run_id, sample=4, rollout=1, execution=EXECUTION, name="diff.patch", part=1
    )
    read = await harness.artifacts.ReadArtifact(wanted)
    assert (read.content, read.artifact) == (b"second", artifact)
    wanted.part = 3
    with pytest.raises(grpc.aio.AioRpcError, match="has no artifact"):
        await harness.artifacts.ReadArtifact(wanted)


@pytest.mark.parametrize("limit", ["max_stored_bytes_per_user", "max_stored_bytes_per_project"])
async def test_a_user_or_project_without_room_stores_no_artifact(
    harness: BatchHarness, connection: Client, limit: str
) -> None:
    user, project_id = f"user-{uuid4().hex}", uuid4().int >> 80
    file = await harness.upload(lines(3, user), user=user, project_id=project_id)
    batch = await harness.create(file.file_id, user=user)
    limits = queue_pb2.SetLimitsRequest()
    setattr(limits.limits, limit, 1)
    await harness.queue.SetLimits(limits, metadata=OPERATOR_METADATA)
    try:
        answer = await put(connection, request(batch.run_id))
    finally:
        reset = queue_pb2.SetLimitsRequest(reset=[limit])
        await harness.queue.SetLimits(reset, metadata=OPERATOR_METADATA)
    assert answer.is_refused
    full = f"project {project_id}" if limit.endswith("project") else user
    assert f"{full} has no room left" in answer.problem


async def test_what_the_object_store_refused_is_not_listed(
    harness: BatchHarness, connection: Client, run_id: str
) -> None:
    assert not (await put(connection, request(run_id, content=b"first"))).problem
    folder = harness.folder / f"runs/{run_id}/4-1/{EXECUTION}"
    # No file can take the place of a folder.
    (folder / "verifier.log-00").mkdir()
    (folder / "diff.patch-00").rename(folder / "kept")
    (folder / "diff.patch-00").mkdir()
    for name in ("verifier.log", "diff.patch"):
        answer = await put(connection, request(run_id, name=name, content=b"longer than the first"))
        assert answer.problem
        assert not answer.is_refused
    [artifact] = await listed(harness, run_id)
    assert (artifact.name, artifact.size_bytes) == ("diff.patch", 5)
    (folder / "verifier.log-00").rmdir()
    assert not (await put(connection, request(run_id, name="verifier.log"))).problem
    assert [each.name for each in await listed(harness, run_id)] == ["diff.patch", "verifier.log"]


@pytest.mark.parametrize("columns", [{"epoch": 2}, {"state": "completed"}, {"state": "cancelled"}])
async def test_a_proof_ends_with_its_epoch_and_its_run(
    harness: BatchHarness, connection: Client, run_id: str, columns: dict[str, object]
) -> None:
    assert not (await put(connection, request(run_id, content=b"judged"))).problem
    await harness.change_run(run_id, **columns)
    answer = await put(connection, request(run_id, content=b"another"))
    assert answer.is_refused
    assert "its run is finished" in answer.problem
    wanted = artifact_pb2.ReadArtifactRequest(
        run_id=run_id, sample=4, rollout=1, execution=EXECUTION, name="diff.patch"
    )
    assert (await harness.artifacts.ReadArtifact(wanted)).content == b"judged"


async def test_a_rollout_has_a_limited_number_of_executions(
    harness: BatchHarness, connection: Client, run_id: str
) -> None:
    executions = [uuid4().hex for _ in range(MAX_EXECUTIONS)]
    for execution in executions:
        assert not (await put(connection, request(run_id, execution=execution))).problem
    answer = await put(connection, request(run_id, execution=uuid4().hex))
    assert answer.is_refused
    assert not (await put(connection, request(run_id, execution=executions[0], name="verifier.log"))).problem
    assert {each.execution for each in await listed(harness, run_id)} == set(executions)


async def test_artifacts_whose_run_an_earlier_version_deleted_are_collected(
    harness: BatchHarness, connection: Client, run_id: str
) -> None:
    assert not (await put(connection, request(run_id))).problem
    kept = (await created(harness)).run_id
    assert not (await put(connection, request(kept))).problem
    # As code that has no table of artifacts.
    await harness.execute("DELETE FROM runs WHERE run_id = $1", run_id)
    pool = await connect_pool(harness.postgres, schema=SCHEMA, max_size=2)
    try:
        session = PostgresSession(pool, QUERIES)
        await PostgresArtifacts(session, SystemClock()).delete_without_run()
    finally:
        await pool.close()
    assert await listed(harness, run_id) == []
    assert len(await listed(harness, kept)) == 1
    collected = "SELECT count(*) FROM unreferenced_prefixes WHERE prefix = $1"
    assert await harness.count(collected, f"runs/{run_id}") == 1
    assert await harness.count(collected, f"runs/{kept}") == 0


@pytest.mark.parametrize(
    "changes", [{"execution": "\0"}, {"name": "\0"}, {"name": "../x"}, {"execution": "é"}]
)
async def test_artifact_of_a_name_that_there_cannot_be_is_not_found(
    harness: BatchHarness, run_id: str, changes: dict[str, str]
) -> None:
    names = {"execution": EXECUTION, "name": "diff.patch", **changes}
    wanted = artifact_pb2.ReadArtifactRequest(
        run_id=run_id, sample=4, rollout=1, execution=names["execution"], name=names["name"]
    )
    with pytest.raises(grpc.aio.AioRpcError, match="has no artifact") as raised:
        await harness.artifacts.ReadArtifact(wanted)
    assert raised.value.code() is grpc.StatusCode.NOT_FOUND
