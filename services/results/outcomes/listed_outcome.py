"""A recorded outcome beside the sample that it answers."""

from dataclasses import dataclass

from services.results.outcomes.outcome import ScoredOutcome
from services.results.runs.run_record import PlannedTask
from services.results.samples.sample_set import Sample


@dataclass(frozen=True, slots=True)
class ListedOutcome:
    """An outcome beside its sample."""

    task: PlannedTask
    sample: Sample
    scored: ScoredOutcome
    is_golden: bool = False
