"""Surroundings of the scheduler in memory: a record that counts, a wire to wipe, a clock to set."""

# ruff: noqa: ARG002 - a fake takes what its port gives

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from proctor.values.comparison import Decision
from proctor.values.run import RunCounts, RunId, RunState, TaskCounts
from proctor.values.scoring import TaskScoring
from proctor.values.usage import TokenUsage
from services.common.errors import ErrorKind, RemoteError
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.notices.notice import Event
from services.scheduler.planning.ports import ClosingProgress, CommittedSet, PlanToOpen
from services.scheduler.planning.shard import FilledShard, MissingSample, Shard
from services.scheduler.progress.progress_tracker import ProgressReport
from services.scheduler.runs.lifecycle.run import PlannedTask, Run
from services.scheduler.suites.rendering.sample import RenderedSample
from services.scheduler.workers.worker import Worker, WorkerTable

START = datetime(2026, 11, 20, 12, tzinfo=UTC)


class SetClock:
    """Continues only when the test says so."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def now(self) -> datetime:
        return START + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds


@dataclass
class ListedWorkers:
    live: list[Worker] = field(default_factory=list)

    def workers(self) -> Sequence[Worker]:
        return self.live

    def table(self) -> WorkerTable:
        return WorkerTable(self.live)


@dataclass
class NotedControls:
    """The last word on each run."""

    words: dict[RunId, tuple[RunState, int]] = field(default_factory=dict)

    async def announce(self, run: Run) -> None:
        self.words[run.run_id] = (run.state, run.epoch)

    async def refresh(self, run: Run) -> None:
        await self.announce(run)


@dataclass(slots=True)
class _Record:
    epoch: int
    rollouts: int
    tasks: list[PlannedTask]
    outcomes: dict[tuple[int, int], tuple[int, str, int]] = field(default_factory=dict)
    is_closed: bool = False
    state: RunState | None = None

    def is_final(self, key: tuple[int, int]) -> bool:
        if key not in self.outcomes:
            return False
        _, failure, epoch = self.outcomes[key]
        return not failure or epoch == self.epoch


class InMemoryRecord:
    """Fake of results, without scores: sets by their digests, outcomes once, counts, closing.

    `refusal` is what it says to new samples, `tokens_of_sample` what each answer took.
    """

    def __init__(self) -> None:
        self.staged: dict[str, list[RenderedSample]] = {}
        self.sets: dict[str, list[RenderedSample]] = {}
        self.records: dict[RunId, _Record] = {}
        self.closings: list[tuple[RunId, int, bool]] = []
        self.refusal: Exception | None = None
        self.deletion_refusal: Exception | None = None
        self.undeletable: set[RunId] = set()
        self.listed_missing = 0
        self.tokens_of_sample = TokenUsage()
        self.decisions: dict[RunId, Decision] = {}

    async def put_samples(
        self, staging_id: str, samples: Sequence[RenderedSample], scoring: TaskScoring | None
    ) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.staged.setdefault(staging_id, []).extend(samples)

    async def commit_sample_set(
        self, staging_id: str, sample_count: int, project_id: int, content_hash: bytes
    ) -> CommittedSet:
        assert len(content_hash) == 32
        if staging_id in self.sets:
            return CommittedSet(staging_id, bytes.fromhex(staging_id))
        if staging_id not in self.staged:
            raise RemoteError(ErrorKind.NOT_FOUND, "SAMPLE_SET_NOT_FOUND", "Sample set not found.", {})
        samples = self.staged.pop(staging_id)
        assert len(samples) == sample_count
        digest = sha256(b"".join(sample.digest for sample in samples)).digest()
        self.sets[digest.hex()] = samples
        return CommittedSet(digest.hex(), digest)

    async def open_run(self, run: Run, plan: PlanToOpen) -> Sequence[str]:
        planned = [task.planned for task in plan.tasks]
        record = self.records.setdefault(run.run_id, _Record(run.epoch, run.order.rollouts, planned))
        if run.epoch < record.epoch:
            _check_epoch(record, run.run_id, run.epoch)
        if run.epoch > record.epoch:
            record.epoch, record.is_closed = run.epoch, False
        return [task.sample_set_id for task in record.tasks]

    async def reuse_answers(self, run: Run, environment: Mapping[str, str]) -> int:
        """From runs over the same samples, where anything is known of the engine."""
        own = self._found(run.run_id)
        own_sets = [task.sample_set_id for task in own.tasks]
        for other in list(self.records.values()) if environment else []:
            if other is not own and [task.sample_set_id for task in other.tasks] == own_sets:
                answered = {key for key, (_, failure, _) in other.outcomes.items() if not failure}
                own.outcomes |= dict.fromkeys(answered - own.outcomes.keys(), (-1, "", own.epoch))
        return sum(shard == -1 for shard, _, _ in own.outcomes.values())

    async def counts(self, run_id: RunId, *, includes_shards: bool = False) -> ProgressReport:
        record = self._found(run_id)
        final = {key: outcome for key, outcome in record.outcomes.items() if record.is_final(key)}
        shards: dict[int, int] = {}
        for shard, _, _ in final.values():
            shards[shard] = shards.get(shard, 0) + 1
        tasks = tuple(
            TaskCounts(task.task, *_counts_of(task, {key: failure for key, (_, failure, _) in final.items()}))
            for task in record.tasks
        )
        answers = sum(not failure for _, failure, _ in final.values())
        usage = TokenUsage(*(tokens * answers for tokens in astuple(self.tokens_of_sample)))
        failures: dict[str, int] = {}
        for _, failure, _ in final.values():
            if failure:
                failures[failure] = failures.get(failure, 0) + 1
        counts = RunCounts(record.epoch, tasks, failures, {"engine": "fake 1"}, usage)
        return ProgressReport(run_id, counts, shards if includes_shards else {})

    async def missing(self, run_id: RunId, epoch: int) -> AsyncIterator[MissingSample]:
        record = self._found(run_id)
        _check_epoch(record, run_id, epoch)
        for rollout in range(record.rollouts):
            for sample in range(sum(task.sample_count for task in record.tasks)):
                if not record.is_final((sample, rollout)):
                    self.listed_missing += 1
                    yield MissingSample(sample, rollout)

    async def close_run(
        self, run: Run, state: RunState, *, allow_partial: bool, unscored: TokenUsage
    ) -> RunCounts | ClosingProgress | None:
        if run.run_id not in self.records:
            return None
        record = self.records[run.run_id]
        if allow_partial and run.epoch > record.epoch:
            record.epoch, record.is_closed = run.epoch, False
        _check_epoch(record, run.run_id, run.epoch)
        if not allow_partial and [item async for item in self.missing(run.run_id, run.epoch)]:
            raise RemoteError(ErrorKind.CONFLICT, "RUN_INCOMPLETE", "outcomes are missing", {})
        self.closings.append((run.run_id, run.epoch, allow_partial))
        record.state = state
        record.is_closed = True
        counts = (await self.counts(run.run_id)).counts
        return replace(counts, usage=counts.usage.plus(unscored))

    async def decide(self, run: Run) -> Decision | None:
        return self.decisions.get(run.run_id)

    async def delete_run(self, run_id: RunId) -> None:
        if self.deletion_refusal is not None:
            raise self.deletion_refusal
        if run_id in self.undeletable:
            raise RemoteError(ErrorKind.INTERNAL, "INTERNAL", "something went wrong", {})
        self.records.pop(run_id, None)

    async def failure_example(self, run_id: RunId, failure_class: str) -> str:
        outcomes = self.records[run_id].outcomes.values()
        failures = [failure for _, failure, _ in outcomes if failure == failure_class]
        return f"the {failures[0]} of a sample" if failures else ""

    def answer(self, run: Run, sample: int, shard: Shard, failure: str = "") -> None:
        """An outcome comes in; what is final, closed or of an earlier epoch changes nothing."""
        record = self.records[run.run_id]
        key = (sample, shard.rollout)
        if not record.is_closed and run.epoch == record.epoch and not record.is_final(key):
            record.outcomes[key] = (shard.number, failure, run.epoch)

    def _found(self, run_id: RunId) -> _Record:
        if run_id not in self.records:
            raise RemoteError(ErrorKind.NOT_FOUND, "RUN_NOT_FOUND", f"Run {run_id} not found.", {})
        return self.records[run_id]


@dataclass
class NotedEvents:
    """What was told of runs, by its key."""

    events: dict[str, Event] = field(default_factory=dict)

    async def record(self, token: FencingToken, event: Event) -> None:
        self.events.setdefault(event.key, event)


@dataclass
class NotedRolloutUse:
    """Rollouts without an outcome used `tokens`. Workers leave them after `questions_to_leave`."""

    tokens: TokenUsage = field(default_factory=TokenUsage)
    questions_to_leave: int = 0
    missing: Sequence[MissingSample] = ()

    async def has_any(self, run: Run) -> bool:
        return self.tokens != TokenUsage()

    async def settle(self, run: Run, missing: Sequence[MissingSample]) -> bool:
        self.missing = missing
        self.questions_to_leave -= 1
        return self.questions_to_leave < 0

    async def unscored(self, run: Run, in_flight: Sequence[Shard] = ()) -> TokenUsage:
        return self.tokens


@dataclass
class InMemoryStream:
    """Shards that were sent and not taken yet; `refusal` is what it says to more."""

    refusal: Exception | None = None
    sent: dict[RunId, list[tuple[Run, Shard]]] = field(default_factory=dict)
    born: int = 0
    payload_bytes: int = 1
    stream_bytes: int = 10**9
    pending_in_outcomes: int = 0
    message_ids: set[tuple[str, int, int, int]] = field(default_factory=set)

    async def fill(
        self, run: Run, tasks: Sequence[PlannedTask], shards: Sequence[Shard]
    ) -> Sequence[FilledShard]:
        return [FilledShard(shard, [bytes(self.payload_bytes)]) for shard in shards]

    async def publish(self, run: Run, shards: Sequence[FilledShard]) -> None:
        if self.refusal is not None:
            raise self.refusal
        for filled in shards:
            message_id = (run.run_id, run.epoch, filled.shard.number, filled.shard.attempt)
            assert message_id not in self.message_ids, "JetStream would drop it in silence"
            self.message_ids.add(message_id)
            self.sent.setdefault(run.run_id, []).append((run, filled.shard))

    async def pending_work(self, run: Run) -> int:
        return len(self.sent.get(run.run_id, []))

    async def pending_outcomes(self, run_id: RunId) -> int:
        return self.pending_in_outcomes

    async def purge_work(self, run: Run) -> None:
        self.sent.pop(run.run_id, None)

    async def runs_with_work(self, pools: Sequence[str]) -> Collection[RunId]:  # all are in one
        return self.sent.keys()

    async def purge_leftovers(self, run_ids: Collection[RunId], pools: Sequence[str]) -> None:
        for run_id in run_ids:
            self.sent.pop(run_id, None)

    async def max_bytes(self, pool: str) -> float:  # all pools are equal
        return self.stream_bytes

    async def stream_generation(self, pools: Sequence[str]) -> str:  # as above
        return str(self.born)

    def wipe(self) -> None:
        self.sent.clear()
        self.born += 1

    def take(self, run_id: RunId) -> list[tuple[Run, Shard]]:
        return self.sent.pop(run_id, [])


def _check_epoch(record: _Record, run_id: RunId, epoch: int) -> None:
    if record.epoch == epoch:
        return
    reason = "EPOCH_OVER" if epoch < record.epoch else "INVALID_PARAMETER"
    raise RemoteError(
        ErrorKind.CONFLICT, reason, f"Run {run_id} is in epoch {record.epoch}, not {epoch}.", {}
    )


def _counts_of(task: PlannedTask, failures: dict[tuple[int, int], str]) -> tuple[int, int]:
    numbers = range(task.first_sample, task.first_sample + task.sample_count)
    of_task = [failure for (sample, _), failure in failures.items() if sample in numbers]
    return len(of_task), sum(bool(failure) for failure in of_task)


class NoArtifacts:
    """The deletion of artifacts where no worker stored any; notes the runs."""

    def __init__(self) -> None:
        self.deleted: list[RunId] = []

    async def delete(self, run_id: RunId) -> None:
        self.deleted.append(run_id)


def slot_seconds(run: Run) -> float:
    """The time that a finished run had slots in its epoch."""
    if run.finished_at is None or run.admitted_at is None:
        return run.ran_seconds
    return run.ran_seconds + (run.finished_at - run.admitted_at).total_seconds()
