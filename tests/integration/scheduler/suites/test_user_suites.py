"""Suites of users through two schedulers on real Postgres: versions, concurrent adds, runs that hold them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import grpc
import pytest
import pytest_asyncio
from pydantic import SecretStr

from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1 import scheduler_service_pb2_grpc as scheduler_grpc
from proctor.v1 import suite_service_pb2 as suite_pb2
from proctor.v1 import suite_service_pb2_grpc as suite_grpc
from proctor.values.run import RunId
from proctor.values.scoring import ScoringMethod
from services.common.grpc.client import open_channel
from services.common.grpc.errors import remote_error
from services.common.postgres import PostgresSession, connect_pool
from services.results.settings import ResultsSettings
from services.results.wiring import running_results
from services.scheduler.limits.postgres import PostgresLimits
from services.scheduler.postgres import QUERIES, SCHEMA
from services.scheduler.runs.lifecycle.postgres import PostgresRuns
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.orders.run_order import RunOrder
from services.scheduler.settings import SchedulerSettings
from services.scheduler.suites.errors import UnknownSuite
from services.scheduler.wiring import running_scheduler
from tests.fakes.callers import CALLER_KEY, GATEWAY, OPERATOR_METADATA
from tests.fakes.dispatch_proof_key import DISPATCH_PROOF_KEY
from tests.fakes.eventually import eventually
from tests.fakes.scheduler.surroundings import START
from tests.fakes.scheduler_rules import queue_limits
from tests.harness.keyed_suite import SUITE, write_keyed_suite
from tests.harness.servers import nats_server, postgres_server

pytestmark = pytest.mark.asyncio(loop_scope="module")

MODEL = "openai/fake"
POOLS = (
    "pools:\n  - {name: remote, engine: openai, concurrency: 64, provider: openai, base_url: 'http://x'}\n"
)
ROWS = b"".join(b'{"a": "%d + 1", "b": %d}\n' % (number, number + 1) for number in range(5))


def document(question: str = "What is", name: str = "sums") -> suite_pb2.SuiteDocument:
    text = f"""\
task: {name}
version: "1"
dataset: {{file: rows.jsonl}}
output_type: generate_until
doc_to_text: "{question} {{{{a}}}}?"
doc_to_target: "{{{{b}}}}"
metric_list: [{{metric: exact_match}}]
"""
    return suite_pb2.SuiteDocument(text=text, file_name="mine.yaml", files={"rows.jsonl": ROWS})


@dataclass(frozen=True)
class Replica:
    runs: "scheduler_grpc.SchedulerServiceAsyncStub"
    suites: "suite_grpc.SuiteServiceAsyncStub"

    async def add(self, brought: suite_pb2.SuiteDocument) -> suite_pb2.AddSuiteResponse:
        return await self.suites.AddSuite(suite_pb2.AddSuiteRequest(document=brought, user="ann"))

    async def prompt(self, suite: str, row: int = 0) -> str:
        task = suite.partition("@")[0]
        request = suite_pb2.ShowSampleRequest(suite=suite, task=task, doc_id=row)
        return (await self.suites.ShowSample(request)).sample.prompt.text

    async def submit(self, suite: str) -> run_pb2.Run:
        order = run_pb2.RunOrder(suite=suite, model=MODEL)
        return (await self.runs.SubmitRun(scheduler_pb2.SubmitRunRequest(order=order))).run

    async def run(self, run_id: str) -> run_pb2.Run:
        return (await self.runs.GetRun(scheduler_pb2.GetRunRequest(run_id=run_id))).run

    async def delete(self, suite: str, version: int) -> None:
        request = suite_pb2.DeleteSuiteRequest(suite=suite, version=version)
        await self.suites.DeleteSuite(request, metadata=OPERATOR_METADATA)


@dataclass(frozen=True)
class Replicas:
    one: Replica
    two: Replica
    postgres: str


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def replicas(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Replicas]:
    folder = tmp_path_factory.mktemp("suites")
    write_keyed_suite(folder / "suites", 3, is_long=False)
    (folder / "pools.yaml").write_text(POOLS)
    async with AsyncExitStack() as opened:
        postgres = await opened.enter_async_context(postgres_server())
        wire = await opened.enter_async_context(nats_server())
        settings = ResultsSettings(
            postgres_dsn=postgres.address,
            nats_url=wire.address,
            results_address="127.0.0.1:0",
            dispatch_proof_key=SecretStr(DISPATCH_PROOF_KEY),
            caller_key=SecretStr(CALLER_KEY),
        )
        results = await opened.enter_async_context(running_results(settings))
        servers = (postgres.address, wire.address)
        one = await opened.enter_async_context(_replica(folder, "one", servers, results.grpc.port))
        two = await opened.enter_async_context(_replica(folder, "two", servers, results.grpc.port))
        yield Replicas(one, two, postgres.address)


@asynccontextmanager
async def _replica(
    folder: Path, name: str, servers: tuple[str, str], results_port: int
) -> AsyncIterator[Replica]:
    settings = SchedulerSettings(
        postgres_dsn=servers[0],
        nats_url=servers[1],
        scheduler_address="127.0.0.1:0",
        results_address=f"127.0.0.1:{results_port}",
        pools_file=folder / "pools.yaml",
        suites_dir=folder / "suites",
        suite_cache_dir=folder / name,
        dispatch_proof_key=SecretStr(DISPATCH_PROOF_KEY),
        caller_key=SecretStr(CALLER_KEY),
    )
    async with (
        running_scheduler(settings) as scheduler,
        open_channel(f"127.0.0.1:{scheduler.grpc.port}", signer=GATEWAY) as channel,
    ):
        yield Replica(
            scheduler_grpc.SchedulerServiceStub(channel),
            suite_grpc.SuiteServiceStub(channel),
        )


async def test_what_one_replica_takes_the_other_has(replicas: Replicas) -> None:
    first = await replicas.one.add(document(name="shared"))
    assert (first.suite.suite, first.suite.version, first.is_known) == ("shared", 1, False)
    assert await replicas.two.prompt("shared", 2) == "What is 2 + 1?"
    again = await replicas.two.add(document(name="shared"))
    assert (again.suite.version, again.suite.digest, again.is_known) == (1, first.suite.digest, True)
    await replicas.two.add(document("How much is", "shared"))
    assert await replicas.one.prompt("shared") == "How much is 0 + 1?"
    assert await replicas.one.prompt("shared@1") == "What is 0 + 1?"
    listed = await replicas.one.runs.ListSuites(scheduler_pb2.ListSuitesRequest())
    versions = {suite.suite: suite.version for suite in listed.suites}
    assert (versions[SUITE], versions["shared"]) == (0, 2)
    [info] = [suite for suite in listed.suites if suite.suite == "shared"]
    assert [(task.task, task.row_source) for task in info.tasks] == [("shared", "shared/rows.jsonl")]
    assert (info.user, first.suite.user, again.suite.user) == ("ann", "ann", "ann")


async def test_suites_that_are_added_at_the_same_time_get_versions_of_their_own(replicas: Replicas) -> None:
    brought = [document(f"Question {number}:", "crowd") for number in range(8)]
    positions = (replicas.one, replicas.two)
    adding = [positions[index % 2].add(one) for one in brought for index in range(3)]
    added = await asyncio.gather(*adding)
    versions = {(response.suite.digest, response.suite.version) for response in added}
    assert sorted(version for _, version in versions) == list(range(1, 9))
    assert len({digest for digest, _ in versions}) == 8
    assert sum(not response.is_known for response in added) == 8


async def test_runs_keep_to_the_version_they_were_ordered_with(replicas: Replicas) -> None:
    await replicas.one.add(document(name="kept"))
    first = await replicas.one.submit("kept")
    await replicas.two.add(document("How much is", "kept"))
    latest, named = await replicas.two.submit("kept"), await replicas.two.submit("kept@1")
    versions = [(run.order.suite, run.suite_version) for run in (first, latest, named)]
    assert versions == [("kept", 1), ("kept", 2), ("kept", 1)]

    async def planned() -> bool:
        runs = [await replicas.one.run(run.run_id) for run in (first, latest, named)]
        return all(run.progress.total == 5 for run in runs)

    await eventually(planned, "all three are planned")
    digests = [
        (await replicas.one.run(run.run_id)).environment["task.kept.samples"]
        for run in (first, latest, named)
    ]
    assert digests[0] == digests[2] != digests[1]


async def test_a_version_that_a_run_used_is_not_deleted(replicas: Replicas) -> None:
    await replicas.one.add(document(name="used"))
    await replicas.one.add(document("How much is", "used"))
    await replicas.one.submit("used@1")
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await replicas.two.delete("used", 1)
    error = remote_error(refused.value)
    assert (refused.value.code(), error.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "SUITE_IN_USE")
    await replicas.two.delete("used", 2)
    assert await replicas.one.prompt("used") == "What is 0 + 1?"
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await replicas.one.submit("used@2")
    assert remote_error(refused.value).reason == "UNKNOWN_SUITE"
    assert (await replicas.one.add(document("What would be", "used"))).suite.version == 3


async def test_run_of_a_version_that_is_gone_is_refused_by_the_store(replicas: Replicas) -> None:
    """Where it is deleted between the look and the order."""
    await replicas.one.add(document(name="gone"))
    run = Run(
        run_id=RunId(str(uuid4())),
        order=RunOrder("gone", MODEL),
        user="ann",
        pool="remote",
        scoring_method=ScoringMethod.GENERATE,
        created_at=START,
        suite_version=2,
    )
    async with await connect_pool(replicas.postgres, schema=SCHEMA) as pool:
        sessions = PostgresSession(pool, QUERIES)
        runs = PostgresRuns(sessions, PostgresLimits(sessions, queue_limits()))
        with pytest.raises(UnknownSuite):
            await runs.add(run, "")


async def test_every_problem_of_a_document_is_reported_and_nothing_is_kept(replicas: Replicas) -> None:
    broken = document(name="broken")
    broken.text = broken.text.replace("doc_to_text", "doc_to_txt").replace("exact_match", "mcc")
    response = await replicas.one.suites.CheckSuite(suite_pb2.CheckSuiteRequest(document=broken))
    assert [(fault.line, fault.field) for fault in response.faults] == [
        (1, "doc_to_text"),
        (5, "doc_to_txt"),
        (7, "metric_list.0.metric"),
    ]
    assert not response.HasField("suite")
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await replicas.one.add(broken)
    assert remote_error(refused.value).reason == "INVALID_SUITE_FILE"
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await replicas.one.prompt("broken")
    assert remote_error(refused.value).reason == "UNKNOWN_SUITE"


async def test_a_suite_of_the_installation_cannot_be_replaced(replicas: Replicas) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await replicas.one.add(document(name=SUITE))
    assert "is an installed suite" in remote_error(refused.value).message


async def test_a_row_behind_the_last_is_reported_with_how_many_there_are(replicas: Replicas) -> None:
    await replicas.one.add(document(name="short"))
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await replicas.one.prompt("short", 5)
    error = remote_error(refused.value)
    assert (error.reason, error.facts["rows"]) == ("ROW_NOT_FOUND", "5")
