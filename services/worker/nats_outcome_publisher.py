"""Sends batches of outcomes to the stream OUTCOMES."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from services.common import subjects
from services.common.jetstream import JetStream
from services.worker.choice_prompt import INSTRUCTION_VERSION
from services.worker.protobuf_outcomes import batch_to_bytes
from services.worker.shard import OutcomeBatch


class NatsOutcomePublisher:
    def __init__(
        self, jetstream: JetStream, worker_id: str, environment: Callable[[], Mapping[str, str]]
    ) -> None:
        self._jetstream = jetstream
        self._worker_id = worker_id
        self._environment = environment

    async def publish(self, batch: OutcomeBatch, message_id: str) -> None:
        payload = batch_to_bytes(batch, self._worker_id, self._environment_of(batch))
        subject = subjects.outcome_subject(batch.run_id)
        await self._jetstream.publish(subjects.OUTCOMES, subject, payload, message_id)

    def _environment_of(self, batch: OutcomeBatch) -> Mapping[str, str]:
        environment = self._environment()
        base_url = batch.outcomes[0].shard.base_url
        if base_url:
            # The server that the order names, and not the pool's own.
            environment = {**environment, "base_url": base_url}
        if not any(outcome.shard.instructs for outcome in batch.outcomes):
            return environment
        return {**environment, "choice_instruction": INSTRUCTION_VERSION}
