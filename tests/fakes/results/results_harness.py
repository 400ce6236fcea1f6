"""The whole results service on a real Postgres and a real NATS, with the clients that its neighbours have."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace

import asyncpg
from nats.aio.client import Client
from pydantic import SecretStr

from proctor.v1 import annotation_service_pb2_grpc as annotation_grpc
from proctor.v1 import answer_service_pb2_grpc as answer_grpc
from proctor.v1 import export_service_pb2_grpc as export_grpc
from proctor.v1 import results_service_pb2_grpc as results_grpc
from proctor.v1 import run_record_service_pb2 as run_record_pb2
from proctor.v1 import run_record_service_pb2_grpc as run_record_grpc
from proctor.v1 import (
    sample_pb2,
    work_messages_pb2,
)
from proctor.values.messaging import PROGRESS_OF_ALL_RUNS, outcome_subject
from proctor.wire.enums import number_of
from proctor.wire.proofs import (
    PROGRESS_PROOF,
    DispatchedShard,
    as_ranges,
    is_progress_proved,
)
from proctor.wire.values import GROUP, OUTCOME
from services.common.grpc.client import open_channel
from services.common.lifecycle import every
from services.common.nats.connection import connect_nats
from services.common.nats.jetstream import JetStream
from services.common.nats.stream_maker import StreamMaker
from services.common.nats.streams import OUTCOMES
from services.results.outcomes.outcome import OutcomeBatch
from services.results.runs.proto import FACTS, task_to_proto
from services.results.runs.run_plan import RunPlan
from services.results.samples.sample import StoredSample
from services.results.settings import ResultsSettings
from services.results.wiring import RunningResults, running_results
from tests.fakes.callers import CALLER_KEY, SCHEDULER
from tests.fakes.dispatch_proof_key import DISPATCH_PROOF_KEY
from tests.fakes.results.recorded_run import choice_sample, content_hash, new_id, plan_of
from tests.harness.servers import POOLS, RunningServer, nats_server, postgres_server

# The contract's bound of a message.
_MAX_OUTCOMES = 250


@dataclass
class ResultsHarness:
    """`results` is the service; the rest is what a scheduler, a worker and a gateway hold."""

    postgres: RunningServer
    nats: RunningServer
    connection: Client
    results: RunningResults
    records: "run_record_grpc.RunRecordServiceAsyncStub"
    public: "results_grpc.ResultsServiceAsyncStub"
    answers: "answer_grpc.AnswerServiceAsyncStub"
    annotations: "annotation_grpc.AnnotationServiceAsyncStub"
    exports: "export_grpc.ExportServiceAsyncStub"
    reports: dict[str, list[work_messages_pb2.ProgressReport]]

    @property
    def jetstream(self) -> JetStream:
        return JetStream(self.connection)

    async def store(self, samples: Sequence[StoredSample], chunk_samples: int = 500) -> str:
        """A committed set of samples."""
        request = await self.put(samples, chunk_samples)
        return (await self.records.CommitSampleSet(request)).sample_set_id

    async def put(
        self, samples: Sequence[StoredSample], chunk_samples: int = 500
    ) -> run_record_pb2.CommitSampleSetRequest:
        """The commit of samples that are staged."""
        staging_id = new_id()
        for start in range(0, len(samples), chunk_samples):
            chunk = [sample_to_proto(sample) for sample in samples[start : start + chunk_samples]]
            await self.records.PutSamples(
                run_record_pb2.PutSamplesRequest(staging_id=staging_id, samples=chunk)
            )
        return run_record_pb2.CommitSampleSetRequest(
            staging_id=staging_id, sample_count=len(samples), content_hash=content_hash(samples)
        )

    async def open(self, plan: RunPlan, epoch: int = 1) -> RunPlan:
        await self.records.OpenRun(
            run_record_pb2.OpenRunRequest(
                run_id=plan.run_id,
                epoch=epoch,
                tasks=[task_to_proto(task) for task in plan.tasks],
                rollouts=plan.rollouts,
                row_rollouts=plan.row_rollouts,
                scoring_method=number_of(plan.scoring_method),
                facts=FACTS.to_proto(plan.facts),
                groups=[GROUP.to_proto(group) for group in plan.groups],
                max_failed_share=plan.max_failed_share,
            )
        )
        return plan

    async def open_run_of(
        self, *sizes: int, rollouts: int = 1, row_rollouts: tuple[int, ...] = ()
    ) -> RunPlan:
        """A run whose samples are stored and that takes outcomes."""
        sets = [await self.store([choice_sample(position) for position in range(size)]) for size in sizes]
        plan = plan_of(sizes, sets, rollouts=rollouts)
        return await self.open(replace(plan, row_rollouts=row_rollouts))

    async def send(self, batch: OutcomeBatch) -> None:
        """As a worker does: a message has at most so many outcomes."""
        for start in range(0, len(batch.outcomes) or 1, _MAX_OUTCOMES):
            part = replace(batch, outcomes=batch.outcomes[start : start + _MAX_OUTCOMES])
            payload = batch_to_proto(part).SerializeToString()
            await self.jetstream.publish(outcome_subject(batch.run_id), payload, uuid.uuid4().hex)

    async def counts(self, run_id: str, *, includes_shards: bool = False) -> work_messages_pb2.ProgressReport:
        request = run_record_pb2.GetCountsRequest(run_id=run_id, includes_shards=includes_shards)
        return (await self.records.GetCounts(request)).report

    async def recorded(self, run_id: str) -> int:
        return sum(task.recorded for task in (await self.counts(run_id)).tasks)

    async def waiting_outcomes(self) -> int:
        return await self.jetstream.pending(OUTCOMES, "outcomes.>")

    @asynccontextmanager
    async def database(self) -> AsyncIterator[asyncpg.Connection]:
        """A look behind the service."""
        connection = await asyncpg.connect(self.postgres.address, server_settings={"search_path": "results"})
        try:
            yield connection
        finally:
            await connection.close()


@asynccontextmanager
async def results_harness(**changed: object) -> AsyncIterator[ResultsHarness]:
    """`changed`: settings that are not the usual ones."""
    async with AsyncExitStack() as opened:
        postgres = await opened.enter_async_context(postgres_server())
        nats = await opened.enter_async_context(nats_server())
        connection = await connect_nats(nats.address, "test")
        opened.push_async_callback(connection.close)
        settings = harness_settings(postgres, nats).model_copy(update=changed)
        results = await opened.enter_async_context(running_results(settings))
        await results.set_ready(True)
        channel = await opened.enter_async_context(
            open_channel(f"127.0.0.1:{results.grpc.port}", signer=SCHEDULER)
        )
        reports: dict[str, list[work_messages_pb2.ProgressReport]] = {}
        listening = asyncio.create_task(_listen(connection, reports))
        opened.callback(listening.cancel)
        maker = StreamMaker(connection, POOLS)
        making = asyncio.create_task(every(0.2, maker.make_missing, name="make streams"))
        opened.callback(making.cancel)
        yield ResultsHarness(
            postgres,
            nats,
            connection,
            results,
            run_record_grpc.RunRecordServiceStub(channel),
            results_grpc.ResultsServiceStub(channel),
            answer_grpc.AnswerServiceStub(channel),
            annotation_grpc.AnnotationServiceStub(channel),
            export_grpc.ExportServiceStub(channel),
            reports,
        )


def harness_settings(postgres: RunningServer, nats: RunningServer) -> ResultsSettings:
    return ResultsSettings(
        postgres_dsn=postgres.address,
        nats_url=nats.address,
        results_address="127.0.0.1:0",
        dispatch_proof_key=SecretStr(DISPATCH_PROOF_KEY),
        caller_key=SecretStr(CALLER_KEY),
        linger_seconds=0.02,
        ack_wait_seconds=2.0,
    )


async def _listen(connection: Client, reports: dict[str, list[work_messages_pb2.ProgressReport]]) -> None:
    subscription = await connection.subscribe(PROGRESS_OF_ALL_RUNS)
    async for message in subscription.messages:
        assert is_progress_proved(message.data, (message.headers or {})[PROGRESS_PROOF], DISPATCH_PROOF_KEY)
        report = work_messages_pb2.ProgressReport.FromString(message.data)
        reports.setdefault(report.run_id, []).append(report)


def sample_to_proto(sample: StoredSample) -> sample_pb2.Sample:
    return sample_pb2.Sample(
        position=sample.position,
        doc_id=sample.doc_id,
        digest=sample.digest,
        prompt=sample_pb2.Prompt(
            text=sample.prompt.text,
            messages=[
                sample_pb2.ChatMessage(role=turn.role, content=turn.content, fields_json=turn.fields_json)
                for turn in sample.prompt.messages
            ],
        ),
        choices=sample.target.choices,
        choice_ending=sample.target.choice_ending,
        target=sample_pb2.Target(
            choice=sample.target.choice,
            texts=sample.target.texts,
            right_choices=sample.target.right_choices,
            wrong_texts=sample.target.wrong_texts,
            choice_texts=sample.target.choice_texts,
        ),
        cluster=sample.cluster,
        doc_json=sample.doc_json,
        row_id=sample.row_id,
        params_json=sample.params_json,
    )


def batch_to_proto(batch: OutcomeBatch) -> work_messages_pb2.OutcomeBatch:
    """As a worker sends it that was given exactly these samples."""
    samples: dict[tuple[int, int, int], set[int]] = {}
    for outcome in batch.outcomes:
        samples.setdefault((outcome.shard, outcome.attempt, outcome.rollout), set()).add(outcome.sample)
    dispatched = [
        DispatchedShard(batch.run_id, batch.epoch, *key, as_ranges(numbers))
        for key, numbers in samples.items()
    ]
    return work_messages_pb2.OutcomeBatch(
        dispatch_proofs=[each.proof(DISPATCH_PROOF_KEY) for each in dispatched],
        run_id=batch.run_id,
        epoch=batch.epoch,
        worker_id="worker-1",
        outcomes=[OUTCOME.to_proto(outcome) for outcome in batch.outcomes],
        environment=batch.environment,
    )
