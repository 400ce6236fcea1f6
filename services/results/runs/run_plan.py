"""The plan of a run, its record (tasks, epoch, whether it still accepts outcomes) and its progress."""

import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from uuid import UUID

from proctor.values.comparison import Decision
from proctor.values.metrics.catalogue import PREFERENCE, VERDICT
from proctor.values.rollout import AgentKind
from proctor.values.run import DEFAULT_MAX_FAILED_SHARE, RunCounts, RunState
from proctor.values.scoring import OutputType, ScoringMethod, TaskGroup, TaskScoring
from proctor.values.usage import ModelPrice
from services.results.scoring.compiled_scoring import CompiledScoring, compile_scoring
from services.results.scoring.timed_regex import SlowTime

# The word for the scoring method of a run that has no choices to score.
UNSPECIFIED = "unspecified"


@dataclass(frozen=True, slots=True)
class TaskProvenance:
    """The source of a task's rows and how they were sent; `temperature` None where it was not set.

    `definition_digest` and `samples_digest` are in hex. `request_json`: what its requests have beside the
    samples. `logged_by`: the tool whose log the answers are from, which does not tell the
    `unknown_conditions`; "" for a run that was ordered here.
    """

    version: str = ""
    num_fewshot: int = 0
    is_stand_in: bool = False
    row_source: str = ""
    row_source_revision: str = ""
    stop: tuple[str, ...] = ()
    max_tokens: int = 0
    temperature: float | None = None
    definition_digest: str = ""
    samples_digest: str = ""
    request_json: str = ""
    logged_by: str = ""
    unknown_conditions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlannedTask:
    """A task of a run: its samples have the numbers first_sample … first_sample + sample_count - 1.

    `request_digest`: of all that makes their requests beside the samples; empty where unknown.
    """

    task: str
    sample_set_id: str
    first_sample: int
    sample_count: int
    scoring: TaskScoring
    provenance: TaskProvenance = field(default_factory=TaskProvenance)
    request_digest: bytes = b""

    @property
    def end_sample(self) -> int:
        """The number after the last sample."""
        return self.first_sample + self.sample_count


@dataclass(frozen=True, slots=True)
class RunFacts:
    """The order of a run. `num_fewshot` None: as each task says; `limit` None: all rows.

    `dataset_name`: of the data set whose id is the `benchmark`; "" where it is a suite. `against_run_id`: the
    run with whose answers a judging run compares; "" for any other run.
    """

    benchmark: str = ""
    suite_version: int = 0
    model: str = ""
    project_id: int = 0
    user: str = ""
    created_at: datetime | None = None
    limit: int | None = None
    num_fewshot: int | None = None
    missing_tasks: tuple[str, ...] = ()
    price: ModelPrice | None = None
    dataset_name: str = ""
    against_run_id: str = ""

    @property
    def is_of_dataset(self) -> bool:
        return bool(self.dataset_name)

    @property
    def title(self) -> str:
        """The name of the benchmark, for people."""
        return self.dataset_name or self.benchmark


@dataclass(frozen=True)
class RunPlan:
    """The part of a run that never changes once it is opened. The last group is the benchmark itself.

    `row_rollouts`: the rollouts of each sample, 0 to `rollouts`; empty where every sample has all of them.
    """

    run_id: str
    tasks: tuple[PlannedTask, ...]
    rollouts: int = 1
    scoring_method: ScoringMethod | None = None
    is_truncated_left: bool = False
    facts: RunFacts = field(default_factory=RunFacts)
    groups: tuple[TaskGroup, ...] = ()
    max_failed_share: float = DEFAULT_MAX_FAILED_SHARE
    row_rollouts: tuple[int, ...] = ()

    @property
    def asks_no_model(self) -> bool:
        """Whether its answers are the tasks' own solutions, or none: then its figures are no model's."""
        return any(kind.asks_no_model for kind in self._agent_kinds())

    @property
    def answering_model(self) -> str:
        """The model, or in words whose answers they are instead."""
        instead = (kind.answers_instead for kind in self._agent_kinds() if kind.asks_no_model)
        return next(instead, self.facts.model)

    def _agent_kinds(self) -> Sequence[AgentKind]:
        requests = [json.loads(task.provenance.request_json or "{}") for task in self.tasks]
        kinds = {request.get("agent_kind") for request in requests}
        return [kind for kind in AgentKind if kind in kinds]

    @property
    def judged_run_id(self) -> str | None:
        """Of a judging run the one that it judges; suites and data sets may have its metric too."""
        names = {use.name for task in self.tasks for use in task.scoring.metrics}
        if len(self.tasks) != 1 or not {VERDICT, PREFERENCE} & names:
            return None
        try:
            return str(UUID(self.facts.benchmark))
        except ValueError:
            return None

    @property
    def total(self) -> int:
        """Samples × rollouts."""
        return sum(map(self.total_of, self.tasks))

    def total_of(self, task: PlannedTask) -> int:
        """Outcomes that the task will have."""
        if self.row_rollouts:
            return sum(self.row_rollouts[task.first_sample : task.end_sample])
        return self.rollouts * task.sample_count

    def is_asked(self, sample: int, rollout: int) -> bool:
        most = self.row_rollouts[sample] if self.row_rollouts else self.rollouts
        return 0 <= rollout < most

    @property
    def end_sample(self) -> int:
        """The number after the last sample of the run."""
        return max((task.end_sample for task in self.tasks), default=0)

    def scoring_method_of(self, task_index: int) -> ScoringMethod | None:
        """The method of the run is for choices; a task of free text is always generated."""
        is_generated = self.scorings[task_index].output_type is OutputType.GENERATE_UNTIL
        return ScoringMethod.GENERATE if is_generated else self.scoring_method

    def task_index_of(self, sample: int) -> int | None:
        """Index of the task that owns a sample number."""
        position = bisect_right(self._first_samples, sample) - 1
        if position < 0:
            return None
        index = self._by_first_sample[position]
        return index if sample < self.tasks[index].end_sample else None

    def task_index_named(self, task: str) -> int | None:
        """Index of a task by its name."""
        return next((index for index, planned in enumerate(self.tasks) if planned.task == task), None)

    @cached_property
    def scorings(self) -> Sequence[CompiledScoring]:
        """How each task is scored."""
        slow_time = SlowTime()
        return [compile_scoring(task.scoring, self.scoring_method, slow_time) for task in self.tasks]

    @cached_property
    def less_is_better(self) -> frozenset[str]:
        """Names of figures of which less is better."""
        metrics = (scored for scoring in self.scorings for scored in scoring.scored_metrics)
        return frozenset(each.key for each in metrics if not each.metric.entry.higher_is_better)

    @cached_property
    def _by_first_sample(self) -> list[int]:
        # Empty tasks own no number and would hide the task that starts at the same number.
        owners = [index for index, task in enumerate(self.tasks) if task.sample_count]
        return sorted(owners, key=lambda index: self.tasks[index].first_sample)

    @cached_property
    def _first_samples(self) -> list[int]:
        return [self.tasks[index].first_sample for index in self._by_first_sample]


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run as recorded. A frozen one refuses outcomes until a later epoch is opened.

    `decision`: between it and the other run of its order, once there is one.
    """

    plan: RunPlan
    epoch: int
    is_frozen: bool = False
    state: RunState | None = None
    frozen_at: datetime | None = None
    decision: Decision | None = None


@dataclass(frozen=True, slots=True)
class RecordedProgress:
    """Counts of a run, without failures of earlier epochs; `shards` counts the outcomes of some shards."""

    run_id: str
    counts: RunCounts
    shards: Mapping[int, int] = field(default_factory=dict)
