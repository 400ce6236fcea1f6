"""The recorded outcomes of a run in its present epoch, as absolute counts: a replay of them does no harm."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from proctor.values.run import RunCounts


@dataclass(frozen=True, slots=True)
class RunProgress:
    """Counts of a run, without failures of earlier epochs; `shards` counts the outcomes of some shards."""

    run_id: str
    counts: RunCounts
    shards: Mapping[int, int] = field(default_factory=dict)
