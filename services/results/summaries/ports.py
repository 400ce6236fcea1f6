"""What the use cases of summaries need from stores."""

from dataclasses import dataclass

from services.results.outcomes.ports import OutcomeStore
from services.results.runs.ports import RunRecordStore
from services.results.samples.ports import SampleSetStore


@dataclass(frozen=True, slots=True)
class Stores:
    """All that results keeps."""

    records: RunRecordStore
    sample_sets: SampleSetStore
    outcomes: OutcomeStore
