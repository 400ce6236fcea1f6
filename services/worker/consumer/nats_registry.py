"""The worker registry in the buckets of the pool: this worker's heartbeat, its peers, and the last switch."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from proctor.v1 import model_pb2, work_messages_pb2
from proctor.values import messaging
from proctor.values.providers.pool import Pool
from proctor.values.providers.worker import WorkerState
from proctor.values.scoring import INSTRUCTION_VERSION
from proctor.wire.enums import number_of
from proctor.wire.values import LOAD
from services.common.clock import ServerClock
from services.common.nats import streams
from services.common.nats.bucket import Bucket
from services.common.nats.connection import TRANSIENT_NATS
from services.common.nats.jetstream import JetStream
from services.common.structured_logs import get_logger
from services.worker.consumer.concurrency_limit import ConcurrencyLimit
from services.worker.consumer.ports import PeerWorker
from services.worker.consumer.process_shard import WorkerContext
from services.worker.models.model_loader import ModelLoader
from services.worker.rate_limits.limiter import RateLimiters

# A machine's clock that is off by less is not reported.
_NOTICED_SECONDS = 10.0

log = get_logger()


@dataclass(frozen=True, slots=True)
class WorkerIdentity:
    """`pod` is empty outside of Kubernetes."""

    worker_id: str
    pool: Pool
    pod: str = ""


class NatsHeartbeat:
    def __init__(
        self,
        *,
        jetstream: JetStream,
        identity: WorkerIdentity,
        context: WorkerContext,
        loader: ModelLoader,
        concurrency: ConcurrencyLimit,
        rollout_slots: int,
        rate_limiters: RateLimiters,
        clock: ServerClock,
    ) -> None:
        self._bucket = Bucket(jetstream, streams.heartbeat_bucket(identity.pool.name))
        self._identity = identity
        self._context = context
        self._loader = loader
        self._concurrency = concurrency
        self._rollout_slots = rollout_slots
        self._rate_limiters = rate_limiters
        self._clock = clock
        self._reported: tuple[object, ...] = ()
        self._sent_at = float("-inf")

    async def send_if_due(self, every_seconds: float) -> None:
        """Sends a heartbeat when the time has come, or at once when its content changed."""
        loader = self._loader
        content = (
            self._state,
            self._note,
            loader.loaded_model,
            loader.cannot_load,
            loader.switching_to,
            loader.ready_models,
            self._context.refused_runs.reasons,
            self._rate_limiters.throttled_servers(),
        )
        # Changes go out at once: the peers decide by them which model they load.
        if content == self._reported and self._clock.monotonic() < self._sent_at + every_seconds:
            return
        await self.send()
        self._reported, self._sent_at = content, self._clock.monotonic()

    async def send(self) -> None:
        """Returns when NATS holds the heartbeat. Raises one of TRANSIENT_NATS."""
        await self._bucket.put(self._identity.worker_id, self._status().SerializeToString())

    async def delete(self) -> None:
        """The worker leaves: no one has to wait until its last heartbeat expires."""
        await self._bucket.delete(self._identity.worker_id)

    @property
    def _state(self) -> WorkerState:
        loader = self._loader
        if self._context.stopping.is_set():
            return WorkerState.DRAINING
        if loader.is_loading:
            return WorkerState.LOADING
        if loader.serves_any or loader.loaded_model:
            return WorkerState.READY
        return WorkerState.NOT_LOADED

    @property
    def _note(self) -> str:
        notes = list(self._clock_note())
        if self._state is WorkerState.NOT_LOADED:
            notes = [*self._loader.cannot_load.values(), *notes]
        return "; ".join(notes)

    def _clock_note(self) -> Iterator[str]:
        ahead = self._clock.machine_ahead_seconds
        if abs(ahead) >= _NOTICED_SECONDS:
            # Rounded, so that it does not change with every heartbeat.
            off = timedelta(seconds=10 * round(abs(ahead) / 10))
            side = "ahead of" if ahead > 0 else "behind"
            yield f"the clock of the machine is {off} {side} that of NATS"

    def _status(self) -> work_messages_pb2.WorkerStatus:
        pool, loader = self._identity.pool, self._loader
        # Everything that an outcome from here may report as its environment.
        environment = loader.environment and {**loader.environment, "choice_instruction": INSTRUCTION_VERSION}
        status = work_messages_pb2.WorkerStatus(
            worker_id=self._identity.worker_id,
            pool=pool.name,
            engine=pool.engine,
            provider=pool.provider_name,
            models=loader.models,
            loaded_model=loader.loaded_model or "",
            samples_in_flight=self._concurrency.in_use,
            concurrency=self._concurrency.limit,
            rollouts_in_flight=self._context.prefetch.rollouts_in_flight,
            rollout_slots=self._rollout_slots,
            state=number_of(self._state),
            note=self._note,
            cannot_load=loader.cannot_load,
            loading_model=loader.switching_to or "",
            ready_models=loader.ready_models,
            environment=environment,
            refusals=[
                work_messages_pb2.RefusedRun(run_id=run, epoch=epoch, reason=reason)
                for (run, epoch), reason in self._context.refused_runs.reasons.items()
            ],
            pod=self._identity.pod,
        )
        if load := loader.engine_load:
            LOAD.fill(status.load, load)
        for server, until in self._rate_limiters.throttled_servers().items():
            status.throttled_servers[server].FromDatetime(until)
        status.sent_at.FromDatetime(self._clock.now())
        return status


class NatsWorkerRegistry:
    def __init__(self, jetstream: JetStream, identity: WorkerIdentity, heartbeat: NatsHeartbeat) -> None:
        self._bucket = Bucket(jetstream, streams.heartbeat_bucket(identity.pool.name))
        self._switches = Bucket(jetstream, streams.switch_bucket(identity.pool.name))
        self._identity = identity
        self._heartbeat = heartbeat

    async def peers(self) -> Sequence[PeerWorker]:
        """Reads all heartbeats of the pool: called only when there is a model to switch to."""
        try:
            heartbeats = await self._bucket.entries()
        except TRANSIENT_NATS as error:
            log.info("peers unknown", error=repr(error))
            return ()
        # Its own is older than what it has in memory.
        heartbeats.pop(self._identity.worker_id, None)
        statuses = map(work_messages_pb2.WorkerStatus.FromString, heartbeats.values())
        return [
            PeerWorker(tuple(status.ready_models), status.loading_model)
            for status in statuses
            # A draining worker answers no more, so its model counts as unserved.
            if status.state != model_pb2.WORKER_STATE_DRAINING
        ]

    async def last_switch(self) -> int | None:
        try:
            return await self._switches.revision(messaging.LAST_SWITCH)
        except TRANSIENT_NATS as error:
            log.info("switches unknown", error=repr(error))
            return None

    async def report_switch(self, *, after: int) -> bool:
        """First the heartbeat: a worker that reads the new revision reads this switch as well."""
        try:
            await self._heartbeat.send()
            worker = self._identity.worker_id.encode()
            # Compare and set: of two workers that decided by the same revision only one succeeds.
            return await self._switches.update(messaging.LAST_SWITCH, worker, revision=after)
        except TRANSIENT_NATS as error:
            log.info("switch not reported", error=repr(error))
            return False
