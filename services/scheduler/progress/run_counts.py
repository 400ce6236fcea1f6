"""A report of results about a run. Counts are absolute: a report that arrives twice changes nothing."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from proctor.values.run import RunCounts


@dataclass(frozen=True, slots=True)
class ProgressReport:
    """Counts of the whole run, and those of each shard whose count has changed."""

    run_id: str
    counts: RunCounts
    shards: Mapping[int, int] = field(default_factory=dict)
