"""What is recorded of a run in its present epoch, as absolute counts: a replay of them does no harm."""

from dataclasses import dataclass, field

from services.results.values import TokenUsage


@dataclass(frozen=True, slots=True)
class TaskCount:
    """Absolute counts of a task in the present epoch."""

    recorded: int = 0
    failed: int = 0
    unparsed: int = 0


@dataclass(frozen=True, slots=True)
class RunCounts:
    """Counts of a run; failures of earlier epochs do not count. `usage` has the tokens of all that counts."""

    run_id: str
    epoch: int
    tasks: dict[str, TaskCount]
    failures: dict[str, int] = field(default_factory=dict)
    shards: dict[int, int] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    usage: TokenUsage = field(default_factory=TokenUsage)

    @property
    def recorded(self) -> int:
        return sum(task.recorded for task in self.tasks.values())

    @property
    def failed(self) -> int:
        return sum(task.failed for task in self.tasks.values())

    @property
    def unparsed(self) -> int:
        return sum(task.unparsed for task in self.tasks.values())
