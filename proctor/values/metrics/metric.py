"""The parts of an entry of the catalogue of metrics: kinds of input and score, units, options."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum

from proctor.values.scoring import OutputType


class MetricInput(Enum):
    """What a metric scores: the output of its tasks, and the key that such a task must have ("" for none)."""

    CHOICE = OutputType.MULTIPLE_CHOICE, "", "choice"
    LOGPROBS = OutputType.MULTIPLE_CHOICE, "", "log-probabilities of choices"
    CHOICE_TEXT = OutputType.MULTIPLE_CHOICE, "doc_to_answers", "choice, as a text"
    TARGET_LOGPROB = OutputType.LOGLIKELIHOOD, "", "log-probability of the target"
    TEXT_LOGPROB = OutputType.LOGLIKELIHOOD_ROLLING, "", "log-probability of a text"
    TEXT = OutputType.GENERATE_UNTIL, "", "text"
    RIGHT_AND_WRONG_TEXT = OutputType.GENERATE_UNTIL, "doc_to_wrong_target", "text, with wrong texts"
    CODE = OutputType.GENERATE_UNTIL, "code", "result of code"
    ROLLOUT = OutputType.GENERATE_UNTIL, "rollout", "verdict on a rollout"

    def __init__(self, output_type: OutputType, task_key: str, in_words: str) -> None:
        self.output_type = output_type
        self.task_key = task_key
        self.in_words = in_words


class ScoreKind(StrEnum):
    """What an answer scores. Of the last four a figure is of all answers together, not a mean of scores."""

    JUDGED = "right or wrong"
    GRADED = "graded"
    LABELS = "labels"
    NUMBERS = "numbers"
    RANKS = "ranks"
    COUNTS = "counts"

    @property
    def is_of_each_answer(self) -> bool:
        return self in (ScoreKind.JUDGED, ScoreKind.GRADED)

    @property
    def is_correlation(self) -> bool:
        """The figure is a correlation of numbers; of ranks only their order counts."""
        return self in (ScoreKind.NUMBERS, ScoreKind.RANKS)


class Unit(Enum):
    """The unit of a figure, with its bounds. Pages show shares and coefficients times a hundred."""

    SHARE = "share", 0.0, 1.0
    COEFFICIENT = "coefficient", -1.0, 1.0
    POINTS = "points", 0.0, 100.0
    POINTS_APART = "points apart", -100.0, 100.0
    NUMBER = "number", None, None

    def __init__(self, in_words: str, low: float | None, high: float | None) -> None:
        self.in_words = in_words
        self.low = low
        self.high = high

    @property
    def is_of_one(self) -> bool:
        """The largest figure is 1."""
        return self.high == 1.0


@dataclass(frozen=True, slots=True)
class MetricOption:
    """`schema` is JSON Schema. `default` is in words, for readers. Only tasks of `output_type` have it."""

    name: str
    schema: Mapping[str, object]
    default: str
    description: str
    output_type: OutputType = OutputType.GENERATE_UNTIL


@dataclass(frozen=True, slots=True)
class Metric:
    """`alias`: a name that users may write for it where no metric of a task is called so.

    `aggregation` is lm-evaluation-harness's name of how scores become a figure. Where less is better
    (`higher_is_better` is false) it is the main one only where of no other more is. `may_be_headline`: its
    figure may stand for a task. `unparsed`: when an answer counts as unparsed.
    """

    name: str
    inputs: tuple[MetricInput, ...]
    description: str
    kind: ScoreKind = ScoreKind.GRADED
    unit: Unit = Unit.SHARE
    options: tuple[MetricOption, ...] = ()
    alias: str = ""
    aggregation: str = "mean"
    may_be_headline: bool = True
    higher_is_better: bool = True
    unparsed: str = ""
    source: str = ""

    def inputs_of(self, output_type: OutputType) -> tuple[MetricInput, ...]:
        return tuple(each for each in self.inputs if each.output_type is output_type)

    def options_of(self, output_type: OutputType) -> Mapping[str, MetricOption]:
        return {each.name: each for each in self.options if each.output_type is output_type}

    def is_ready_for(self, output_type: OutputType) -> bool:
        """A task of this output needs no further key for it."""
        return any(not each.task_key for each in self.inputs_of(output_type))

    @property
    def needs_logprobs(self) -> bool:
        """Choices that a model gives in words cannot be scored by it."""
        of_choices = self.inputs_of(OutputType.MULTIPLE_CHOICE)
        return bool(of_choices) and set(of_choices) == {MetricInput.LOGPROBS}
