"""Shards go onto the stream of their pool as messages that hold all a worker needs."""

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import groupby
from typing import Protocol

from proctor.v1 import sample_pb2, work_messages_pb2
from proctor.values import messaging
from proctor.values.run import RunId
from proctor.values.sample import MAX_READ_SAMPLES
from proctor.values.scoring import OutputType, PromptForm, ScoringMethod
from proctor.wire.enums import number_of
from proctor.wire.proofs import prove_dispatch
from proctor.wire.values import CODE_CHECK, PARAMS, PROMPT
from proctor.wire.well_known import time_left_to_proto
from services.common.clock import Clock
from services.common.errors import MessageTooLarge
from services.common.nats import streams
from services.common.nats.jetstream import JetStream
from services.common.traces import SpanKind, span
from services.scheduler.planning.rendered_samples import AskedSample, RenderedSamples
from services.scheduler.planning.shard import MAX_SHARD_BYTES, FilledShard, Shard, ShardCutter
from services.scheduler.runs.lifecycle.run import PlannedTask, Run
from services.scheduler.runs.orders.run_order import params_for

# A sample that was just rendered, or as results has stored it.
WireSample = AskedSample | sample_pb2.Sample
# A stream that is full or away for longer is left alone; what was not sent is found by reconciling.
_PUBLISH_SECONDS = 30.0


class SampleMessages(Protocol):
    async def read_samples(
        self, sample_set_id: str, positions: Sequence[int]
    ) -> Sequence[sample_pb2.Sample]: ...


class NatsShardStream:
    """`any_model_pools` are those whose workers take any model: their subjects do not name models."""

    def __init__(
        self,
        jetstream: JetStream,
        samples: SampleMessages,
        any_model_pools: frozenset[str],
        clock: Clock,
        dispatch_proof_key: str,
        *,
        rendered: RenderedSamples,
    ) -> None:
        self._dispatch_proof_key = dispatch_proof_key
        self._jetstream = jetstream
        self._clock = clock
        self._samples = samples
        self._rendered = rendered
        self._any_model_pools = any_model_pools

    async def fill(
        self, run: Run, tasks: Sequence[PlannedTask], shards: Sequence[Shard]
    ) -> Sequence[FilledShard]:
        filled: list[FilledShard] = []
        for task_index, group in groupby(shards, key=lambda shard: shard.task_index):
            task = tasks[task_index]
            frame = _task_message(run, task, self._clock.now())
            of_task = list(group)
            first, found = await self._read_first(task, of_task)
            filled += [FilledShard(shard, self._payloads(frame, shard, found)) for shard in first]
            # The order of shards is kept: those behind the first that did not fit wait for the next go.
            if len(first) < len(of_task):
                break
        return filled

    async def publish(self, run: Run, shards: Sequence[FilledShard]) -> None:
        subject = messaging.work_subject(run.pool, self._token(run), run.order.priority, run.run_id)
        try:
            with span("send shards", SpanKind.PRODUCER, attributes={"proctor.shards": len(shards)}):
                # All at once: one acknowledgement takes a round trip, and a batch has up to 16 shards.
                async with asyncio.timeout(_PUBLISH_SECONDS), asyncio.TaskGroup() as group:
                    for message_id, payload in _messages(run, shards):
                        publishing = self._jetstream.publish(subject, payload, message_id)
                        group.create_task(publishing, name="publish shard")
        # Callers expect `MessageTooLarge` or an outage, not a group; one cause stands for all of them.
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from failed

    async def pending_work(self, run: Run) -> int:
        return await self._jetstream.pending(streams.work_stream(run.pool), messaging.work_of_run(run.run_id))

    async def pending_outcomes(self, run_id: RunId) -> int:
        return await self._jetstream.pending(streams.OUTCOMES, messaging.outcome_subject(run_id))

    async def purge_work(self, run: Run) -> None:
        await self._jetstream.purge(streams.work_stream(run.pool), messaging.work_of_run(run.run_id))

    async def runs_with_work(self, pools: Sequence[str]) -> Collection[RunId]:
        return {
            RunId(messaging.run_of_work(subject)) for pool in pools for subject in await self._waiting(pool)
        }

    async def purge_leftovers(self, run_ids: Collection[RunId], pools: Sequence[str]) -> None:
        """One request for each pool, and one for each subject that still has messages."""
        for pool in pools:
            for subject in await self._waiting(pool):
                if messaging.run_of_work(subject) in run_ids:
                    await self._jetstream.purge(streams.work_stream(pool), subject)

    async def _waiting(self, pool: str) -> Collection[str]:
        """The subjects of a pool that have messages."""
        stream = streams.work_stream(pool)
        return (await self._jetstream.pending_by_subject(stream, messaging.work_of_pool(pool))).keys()

    async def max_bytes(self, pool: str) -> float:
        return await self._jetstream.max_bytes(streams.work_stream(pool))

    async def stream_generation(self, pools: Sequence[str]) -> str:
        work = [streams.work_stream(pool) for pool in pools]
        return await self._jetstream.stream_generation([*work, streams.OUTCOMES])

    def _payloads(
        self, frame: work_messages_pb2.WorkShard, shard: Shard, found: Mapping[int, WireSample]
    ) -> Sequence[bytes]:
        """Messages of a shard. A first epoch was cut by weight; a retry is cut here, where it is known."""
        weights = [_weight_of(found[number]) for number in shard.samples]
        if sum(weights) <= MAX_SHARD_BYTES:
            return [self._payload(frame, shard, found)]
        cutter = ShardCutter(0)
        cutter.add(weights)
        parts = [[shard.samples[index] for index in indexes] for indexes in cutter.finish()]
        return [self._payload(frame, replace(shard, samples=part), found) for part in parts]

    def _payload(
        self, frame: work_messages_pb2.WorkShard, shard: Shard, found: Mapping[int, WireSample]
    ) -> bytes:
        message = work_messages_pb2.WorkShard()
        # The message of the task is built once: copying is cheaper than setting its fields for each shard.
        message.CopyFrom(frame)
        message.shard, message.attempt, message.rollout = shard.number, shard.attempt, shard.rollout
        for number in shard.samples:
            fill_work(message.samples.add(sample=number), found[number])
        # Last: the proof covers every field above.
        prove_dispatch(message, self._dispatch_proof_key)
        return message.SerializeToString()

    async def _read_first(
        self, task: PlannedTask, shards: Sequence[Shard]
    ) -> tuple[Sequence[Shard], Mapping[int, WireSample]]:
        """Samples of as many of the first shards as one answer may hold, and of one in any case."""
        while len(shards) > 1:
            try:
                return shards, await self._read(task, _numbers_of(shards))
            except MessageTooLarge:
                shards = shards[: len(shards) // 2]
        return shards, await self._read_in_parts(task, _numbers_of(shards))

    async def _read_in_parts(self, task: PlannedTask, numbers: Sequence[int]) -> Mapping[int, WireSample]:
        try:
            return await self._read(task, numbers)
        except MessageTooLarge:
            # A single sample beyond the limit fails the run: no repetition makes it smaller.
            if len(numbers) == 1:
                raise
        middle = len(numbers) // 2
        first = await self._read_in_parts(task, numbers[:middle])
        return {**first, **await self._read_in_parts(task, numbers[middle:])}

    async def _read(self, task: PlannedTask, numbers: Sequence[int]) -> Mapping[int, WireSample]:
        """Samples by their number in the run."""
        first = task.first_sample
        rendered = self._rendered.take(task.sample_set_id, [number - first for number in numbers])
        found: dict[int, WireSample] = {first + position: sample for position, sample in rendered.items()}
        missing = [number for number in numbers if number not in found]
        for start in range(0, len(missing), MAX_READ_SAMPLES):
            part = missing[start : start + MAX_READ_SAMPLES]
            samples = await self._samples.read_samples(task.sample_set_id, [each - first for each in part])
            found.update(zip(part, samples, strict=True))
        return found

    def _token(self, run: Run) -> str:
        is_any = run.pool in self._any_model_pools
        return messaging.ANY_MODEL if is_any else messaging.model_token(run.order.model)


def _weight_of(sample: WireSample) -> int:
    """Bytes, about: of a sample that was just rendered those that shards are cut by."""
    return sample.size_bytes if isinstance(sample, AskedSample) else sample.ByteSize()


def fill_work(work: work_messages_pb2.WorkSample, sample: WireSample) -> None:
    """Writes all but the number. The same message comes of both forms; it has no target and no digest."""
    if isinstance(sample, AskedSample):
        PROMPT.fill(work.prompt, sample.prompt)
        if sample.code_check:
            CODE_CHECK.fill(work.code_check, sample.code_check)
    else:
        work.prompt.CopyFrom(sample.prompt)
        if sample.HasField("code_check"):
            work.code_check.CopyFrom(sample.code_check)
    # Writing a default costs as much as any value.
    if sample.choices:
        work.choices.extend(sample.choices)
    if sample.params_json:
        work.params_json = sample.params_json
    if sample.rollout_spec:
        work.rollout_spec = sample.rollout_spec
    if sample.choice_ending:
        work.choice_ending = sample.choice_ending


def _task_message(run: Run, task: PlannedTask, now: datetime) -> work_messages_pb2.WorkShard:
    """The fields that all shards of a task have in common."""
    is_text = task.output_type is OutputType.GENERATE_UNTIL
    method = ScoringMethod.GENERATE if is_text else run.scoring_method
    order = run.order
    return work_messages_pb2.WorkShard(
        run_id=run.run_id,
        epoch=run.epoch,
        model=order.model,
        task=task.task,
        scoring_method=number_of(method),
        params=PARAMS.to_proto(params_for(order.params, task.generation)),
        stop=task.stop,
        prompt_form=number_of(order.prompt_form or _default_form(method)),
        truncation=number_of(order.truncation),
        time_left=time_left_to_proto(run.deadline, now),
        stream_answers=order.stream_answers,
        base_url=order.base_url,
        use_engine_defaults=bool(order.dataset_id),
        keeps_reasoning=order.keeps_reasoning,
    )


def _default_form(method: ScoringMethod) -> PromptForm | None:
    """Log-likelihood scored choices continue the text. Otherwise the worker decides by its engine."""
    return PromptForm.COMPLETION if method is ScoringMethod.LOGLIKELIHOOD else None


def _messages(run: Run, shards: Sequence[FilledShard]) -> Iterator[tuple[str, bytes]]:
    """The message id and payload of each part of each shard."""
    for filled in shards:
        shard = filled.shard
        for part, payload in enumerate(filled.payloads):
            message_id = messaging.shard_message_id(run.run_id, run.epoch, shard.number, shard.attempt, part)
            yield message_id, payload


def _numbers_of(shards: Sequence[Shard]) -> Sequence[int]:
    return sorted({sample for shard in shards for sample in shard.samples})
