"""A log of another tool as the process that reads it hands it over, in plain values."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from proctor.values.metrics.catalogue import LIKELIHOOD_AGGREGATIONS, METRICS
from proctor.values.metrics.metric import ScoreKind
from proctor.values.metrics.names import headline_first
from proctor.values.names.run_labels import RunLabels
from proctor.values.outcome import Answer
from proctor.values.scoring import MetricUse, OutputType, TaskScoring
from proctor.values.usage import Timing, TokenUsage
from services.scheduler.suites.rendering.sample import RenderedSample

# A score, or two numbers of which the figure of a task is made.
LoggedScore = float | tuple[float, float]


@dataclass(frozen=True, slots=True)
class ImportHeader:
    """What is imported, and as what: "" and 0 where the log tells it, or nothing does."""

    name: str
    user: str
    suite: str = ""
    model: str = ""
    task: str = ""
    project_id: int = 0
    labels: RunLabels = field(default_factory=RunLabels)
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """`sent_bytes`: as sent, and what lies on the disk meanwhile: the decompressed file, and its samples.

    `read_bytes`: of all files of an archive, as often as they are read. `samples`: their number.
    """

    sent_bytes: int
    read_bytes: int
    samples: int


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What the log need not tell: see `ImportHeader`. `versions` of the tasks of the suite, by name."""

    name: str
    benchmark: str = ""
    model: str = ""
    task: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCheck:
    """The check of one log, in plain values. Its samples are stored below `prefix`."""

    prefix: str
    options: ReadOptions
    limits: ReadLimits


@dataclass(frozen=True, slots=True)
class LoggedAnswer:
    """An answer with the scores of the log; or None and, in one sentence, why there is none."""

    answer: Answer | None
    failure: str = ""
    scores: Mapping[str, LoggedScore] = field(default_factory=dict)
    prediction: str = ""
    is_unparsed: bool = False
    usage: TokenUsage = field(default_factory=TokenUsage)
    timing: Timing = field(default_factory=Timing)


@dataclass(frozen=True, slots=True)
class LoggedSample:
    """A sample with its answers, one for each rollout."""

    sample: RenderedSample
    answers: tuple[LoggedAnswer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedTask:
    """`metrics` have the names that the log gives them, its main one first; `filters` read the answers.

    `request`: what is known of the requests beside the samples. `unknown`: names of conditions that the log
    does not tell. `figures`: those that the log itself has, by its own names.
    """

    task: str
    version: str
    output_type: OutputType
    metrics: tuple[MetricUse, ...]
    filters_json: str = ""
    sample_count: int = 0
    num_fewshot: int = 0
    row_source: str = ""
    request_json: str = "{}"
    unknown: tuple[str, ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)
    keeps_reasoning: bool = False

    @property
    def scoring(self) -> TaskScoring:
        return TaskScoring(
            self.output_type,
            headline_first(self.metrics),
            self.filters_json,
            keeps_reasoning=self.keeps_reasoning,
            is_logged=True,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRun:
    """`answer_counts`: of each sample of the run, where some have fewer; `notes` are sentences."""

    tool: str
    tool_version: str = ""
    model: str
    benchmark: str
    tasks: tuple[LoggedTask, ...]
    rollouts: int = 1
    answer_counts: tuple[int, ...] = ()
    limit: int | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def tool_in_words(self) -> str:
        return f"{self.tool} {self.tool_version}".strip()


@dataclass(frozen=True, slots=True)
class CheckedLog:
    """`run` is None where the log is refused: `problem` is a sentence."""

    run: LoggedRun | None = None
    problem: str = ""
    digest: str = ""
    size_bytes: int = 0


def has_pairs(metric: str) -> bool:
    """Whether a metric of ours is made of pairs of numbers; other counts are made of texts."""
    known = METRICS.get(metric)
    if known is None or known.kind.is_of_each_answer:
        return False
    return known.kind is not ScoreKind.COUNTS or known.aggregation in LIKELIHOOD_AGGREGATIONS


def logged_metric(name: str, *, is_of_pairs: bool, less_is_better: bool = False) -> MetricUse:
    """A metric of a log: its figure is the mean of its scores, unless it is ours and made of pairs."""
    aggregation = "" if is_of_pairs or not has_pairs(name) else "mean"
    return MetricUse(name, aggregation=aggregation, less_is_better=less_is_better)


def part_key(prefix: str, task_index: int, part: int) -> str:
    """Where a part of the samples of a task lies, in order."""
    return f"{prefix}/{task_index:06}/{part:06}"
