"""Shards of heavy samples: read in answers, and sent in messages, that are not too large."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4

import nats
import pytest

from proctor.v1 import sample_pb2, work_messages_pb2
from proctor.values import messaging
from proctor.values.run import RunId
from proctor.values.sample import Prompt
from proctor.values.scoring import OutputType, ScoringMethod
from proctor.wire.proofs import proved_samples
from services.common.clock import SystemClock
from services.common.errors import MessageTooLarge
from services.common.nats import streams
from services.common.nats.jetstream import JetStream
from services.scheduler.dispatch.nats import NatsShardStream
from services.scheduler.planning.rendered_samples import RenderedSamples
from services.scheduler.planning.shard import MAX_SHARD_BYTES, Shard
from services.scheduler.runs.lifecycle.run import PlannedTask, Run
from services.scheduler.runs.orders.run_order import RunOrder
from services.scheduler.suites.rendering.sample import RenderedSample
from tests.fakes.dispatch_proof_key import DISPATCH_PROOF_KEY
from tests.harness.servers import nats_server

MEBIBYTE = 1024 * 1024
ANSWER_BYTES = 16 * MEBIBYTE
TASK = PlannedTask(
    task="heavy",
    version="1",
    sample_set_id="set",
    sample_count=1024,
    output_type=OutputType.GENERATE_UNTIL,
    row_source="rows",
    row_source_revision="1",
)
RUN = Run(
    RunId(str(uuid4())),
    RunOrder("heavy", "openai/fake"),
    "local",
    "remote",
    ScoringMethod.GENERATE,
    datetime(2026, 11, 20, tzinfo=UTC),
)


class HeavySamples:
    """All of one size; refuses an answer that is too large, as gRPC does."""

    def __init__(self, sample_bytes: int) -> None:
        self._prompt = sample_pb2.Prompt(text="x" * sample_bytes)
        self.read: list[int] = []

    async def read_samples(self, sample_set_id: str, positions: Sequence[int]) -> Sequence[sample_pb2.Sample]:  # noqa: ARG002  # the port's signature
        samples = [sample_pb2.Sample(position=position, prompt=self._prompt) for position in positions]
        if sum(sample.ByteSize() for sample in samples) > ANSWER_BYTES:
            raise MessageTooLarge("Received message larger than max")
        self.read += positions
        return samples


@asynccontextmanager
async def wire_of(sample_bytes: int) -> AsyncIterator[tuple[NatsShardStream, JetStream]]:
    async with nats_server() as server:
        connection = await nats.connect(server.address)
        jetstream = JetStream(connection)
        yield (
            NatsShardStream(
                jetstream,
                HeavySamples(sample_bytes),
                frozenset({"remote"}),
                SystemClock(),
                DISPATCH_PROOF_KEY,
                rendered=RenderedSamples(),
            ),
            jetstream,
        )
        await connection.close()


def proved_by(work: work_messages_pb2.WorkShard) -> frozenset[int]:
    """The samples that its dispatch proof covers."""
    batch = work_messages_pb2.OutcomeBatch(run_id=work.run_id, epoch=work.epoch)
    batch.dispatch_proofs.append(work.dispatch_proof)
    return proved_samples(batch, DISPATCH_PROOF_KEY)[work.shard, work.attempt, work.rollout]


def shards_of(count: int, size: int) -> list[Shard]:
    return [
        Shard(number, 0, 0, range(number * size, (number + 1) * size), size, attempt=1)
        for number in range(count)
    ]


async def test_samples_of_four_mebibytes_go_out_alone_and_a_few_at_a_time() -> None:
    async with wire_of(4 * MEBIBYTE - 1000) as (wire, jetstream):
        filled = await wire.fill(RUN, [TASK], shards_of(16, 1))
        assert [one.shard.number for one in filled] == [0, 1, 2, 3]
        await wire.publish(RUN, filled)
        assert await jetstream.pending(streams.work_stream("remote"), messaging.work_of_run(RUN.run_id)) == 4


async def test_shard_of_a_retry_that_is_too_heavy_goes_out_in_parts() -> None:
    run = replace(RUN, run_id=RunId(str(uuid4())))
    async with wire_of(600_000) as (wire, jetstream):
        filled = await wire.fill(run, [TASK], shards_of(1, 64))
        [shard] = filled
        parts = [work_messages_pb2.WorkShard.FromString(payload) for payload in shard.payloads]
        assert [sample.sample for part in parts for sample in part.samples] == list(range(64))
        assert {(part.shard, part.attempt) for part in parts} == {(0, 1)}
        assert [proved_by(part) for part in parts] == [
            {sample.sample for sample in part.samples} for part in parts
        ]
        await wire.publish(run, filled)
        assert await jetstream.pending(
            streams.work_stream("remote"), messaging.work_of_run(run.run_id)
        ) == len(parts)


async def test_message_over_the_limit_of_the_wire_is_reported_as_such() -> None:
    run = replace(RUN, run_id=RunId(str(uuid4())))
    async with wire_of(9 * MEBIBYTE) as (wire, _):
        filled = await wire.fill(run, [TASK], shards_of(2, 1))
        with pytest.raises(MessageTooLarge, match="too large to be sent"):
            await wire.publish(run, filled)


def unsent(stored: HeavySamples, rendered: RenderedSamples | None = None) -> NatsShardStream:
    kept = rendered or RenderedSamples()
    return NatsShardStream(None, stored, frozenset(), SystemClock(), DISPATCH_PROOF_KEY, rendered=kept)  # type: ignore[arg-type]  # sends nothing


async def test_samples_that_were_just_rendered_are_not_read_from_results() -> None:
    stored, rendered = HeavySamples(10), RenderedSamples()
    second = replace(TASK, first_sample=5)
    rendered.add("set", [RenderedSample(at, at, b"", Prompt(f"rendered {at}")) for at in (0, 2)])
    for read in ([1, 3], [0, 1, 2, 3]):
        [filled] = await unsent(stored, rendered).fill(RUN, [second], [Shard(0, 0, 0, range(5, 9), 4)])
        [payload] = filled.payloads
        sent = work_messages_pb2.WorkShard.FromString(payload).samples
        assert [each.sample for each in sent] == [5, 6, 7, 8]
        rendered_ones = [
            each.sample - 5 for each in sent if each.prompt.text == f"rendered {each.sample - 5}"
        ]
        assert rendered_ones == [at for at in range(4) if at not in read]
        assert stored.read == read
        stored.read.clear()


@pytest.mark.parametrize("sample_bytes", [100, 4000])
async def test_light_shards_are_one_message_each(sample_bytes: int) -> None:
    filled = await unsent(HeavySamples(sample_bytes)).fill(RUN, [TASK], shards_of(16, 64))
    assert [len(one.payloads) for one in filled] == [1] * 16
    assert all(len(one.payloads[0]) < 2 * MAX_SHARD_BYTES for one in filled)


async def test_a_shard_of_the_next_epoch_is_stored_beside_that_of_the_one_before() -> None:
    """JetStream drops an id that it has seen in the last two minutes, also after a purge."""
    run = replace(RUN, run_id=RunId(str(uuid4())))
    async with wire_of(100) as (wire, _):
        for epoch in (1, 2):
            current = replace(run, epoch=epoch)
            await wire.publish(current, await wire.fill(current, [TASK], shards_of(2, 4)))
            assert await wire.pending_work(current) == 2
            await wire.purge_work(current)
            assert await wire.pending_work(current) == 0


async def test_what_workers_send_back_of_ended_runs_is_removed() -> None:
    ended, live = (replace(RUN, run_id=RunId(str(uuid4()))) for _ in range(2))
    async with wire_of(100) as (wire, _):
        for run in (ended, live):
            await wire.publish(run, await wire.fill(run, [TASK], shards_of(2, 4)))
        pools = ("local", "remote")
        assert await wire.runs_with_work(pools) == {ended.run_id, live.run_id}
        await wire.purge_leftovers({ended.run_id}, pools)
        assert [await wire.pending_work(run) for run in (ended, live)] == [0, 2]
