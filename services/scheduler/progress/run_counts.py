"""How much of a run is recorded, in absolute counts: a replay of a report does no harm."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from services.scheduler.runs.model_price import TokenUsage


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """`recorded` outcomes of a task: answers, and the `failed` of the machinery; `unparsed` are answers."""

    task: str
    recorded: int = 0
    failed: int = 0
    unparsed: int = 0


@dataclass(frozen=True, slots=True)
class RunCounts:
    """All tasks of a run, in one epoch."""

    epoch: int
    tasks: tuple[TaskCounts, ...] = ()
    failures: Mapping[str, int] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    usage: TokenUsage = field(default_factory=TokenUsage)

    @property
    def recorded(self) -> int:
        return sum(task.recorded for task in self.tasks)

    @property
    def failed(self) -> int:
        return sum(task.failed for task in self.tasks)

    def is_older_than(self, other: "RunCounts") -> bool:
        return (self.epoch, self.recorded) < (other.epoch, other.recorded)


@dataclass(frozen=True, slots=True)
class ProgressReport:
    """A report of results: counts of the whole run, and of each shard whose count has changed."""

    run_id: str
    counts: RunCounts
    shards: Mapping[int, int] = field(default_factory=dict)
