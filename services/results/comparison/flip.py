"""Samples on which two runs differ."""

from dataclasses import dataclass

from services.results.comparison.answer_pairs import SampleAnswers
from services.results.runs.run_plan import PlannedTask
from services.results.samples.sample import Sample


@dataclass(frozen=True, slots=True)
class FlipQuery:
    """Samples of a task in two runs, after a number of the first one's."""

    run_ids: tuple[str, str]
    tasks: tuple[PlannedTask, PlannedTask]
    metric: str
    after_sample: int
    most: int


@dataclass(frozen=True, slots=True)
class FoundFlip:
    """`position` is that in the sample set of the first run. Predictions are those of the first rollouts."""

    position: int
    first: SampleAnswers
    second: SampleAnswers
    predictions: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Flip:
    """Beside its sample; scores are means over rollouts."""

    task: PlannedTask
    sample: Sample
    predictions: tuple[str, str]
    scores: tuple[float, float]
