"""The summary of a run: its figures per task and metric, its counts, tokens and times."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from proctor.values.comparison import Decision
from proctor.values.names.contamination import MAX_FIGURES, ContaminationKind
from proctor.values.scoring import ScoringMethod
from proctor.values.usage import NO_TOKENS, ModelPrice, Timing, TokenUsage
from services.results.outcomes.timing_summary import TimingSummary
from services.results.statistics.figure import Figure
from services.results.statistics.intervals import Interval, wilson_interval


@dataclass(frozen=True, slots=True)
class TaskSummary:
    """`figures` go by metric, in the order of the task."""

    task: str
    version: str
    num_fewshot: int
    scoring_method: ScoringMethod | None
    is_stand_in: bool
    row_source: str
    row_source_revision: str
    total: int
    answered: int
    failed: int
    unparsed: int
    figures: Mapping[str, Figure]


@dataclass(frozen=True, slots=True)
class GroupSummary:
    """The figures of several tasks together, the headline figure first.

    `missing_tasks` belong to it and were not part of the run.
    """

    group: str
    tasks: tuple[str, ...]
    figures: Mapping[str, Figure]
    missing_tasks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ContaminationDifference:
    """The mean score of the rows that overlap minus that of the others, with its 95 % interval."""

    metric: str
    difference: float
    ci_low: float
    ci_high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ContaminationFigure:
    """`found` of `searched` rows are in the corpus; of canaries, documents hold one. `ngram`: of overlaps.

    It says nothing of what a model was trained on.
    """

    kind: ContaminationKind
    corpus: str
    found: int
    searched: int
    recorded_at: datetime
    user: str = ""
    ngram: int = 0
    differences: tuple[ContaminationDifference, ...] = ()

    @property
    def share(self) -> float:
        return self.found / self.searched

    @property
    def interval(self) -> Interval:
        return wilson_interval(self.share, self.searched)


@dataclass(frozen=True, slots=True)
class RunSummary:
    """Partial where not every sample has a final outcome. `failures` goes by the word of the class.

    The last of the `groups` is the benchmark itself. `problems`: what could not be computed, with the reason.
    `unscored` is the part of `usage` that no outcome counts. `decision`: why the run stopped early.
    """

    run_id: str
    epoch: int
    is_partial: bool
    tasks: tuple[TaskSummary, ...]
    total: int
    computed_at: datetime
    failures: Mapping[str, int] = field(default_factory=dict)
    usage: TokenUsage = field(default_factory=TokenUsage)
    mean_timing: Timing = field(default_factory=Timing)
    is_truncated_left: bool = False
    groups: tuple[GroupSummary, ...] = ()
    price: ModelPrice | None = None
    timing: TimingSummary = field(default_factory=TimingSummary)
    reused_answers: int = 0
    problems: tuple[str, ...] = ()
    gpu_seconds: float = 0.0
    unscored: TokenUsage = NO_TOKENS
    # From its first answered request to its last outcome; 0 for a run of several epochs, whose pauses it
    # would contain.
    answering_seconds: float = 0.0
    decision: Decision | None = None
    contamination: tuple[ContaminationFigure, ...] = ()

    def with_contamination(self, figure: ContaminationFigure) -> "RunSummary":
        """In the place of one of the same kind and corpus; of too many the earliest goes."""
        same = (figure.kind, figure.corpus)
        others = [one for one in self.contamination if (one.kind, one.corpus) != same]
        return replace(self, contamination=(*others, figure)[-MAX_FIGURES:])

    @property
    def cost(self) -> float | None:
        """Cost of the tokens of this run, without reused answers; None where its model has no price."""
        return self.price.cost(self.usage) if self.price else None

    @property
    def answered(self) -> int:
        return sum(task.answered for task in self.tasks)

    @property
    def failed(self) -> int:
        return sum(task.failed for task in self.tasks)

    @property
    def unparsed(self) -> int:
        return sum(task.unparsed for task in self.tasks)

    @property
    def unparsed_rate(self) -> float | None:
        """Share of the answers; None without any."""
        return self.unparsed / self.answered if self.answered else None
