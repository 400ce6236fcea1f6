"""Mean, deviation and percentiles of the times of a run's answers."""

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from proctor.values.usage import Timing

# Percentiles of more answers are read from a histogram, which needs no sorting.
MAX_EXACT = 100_000

# Buckets divide the logarithm of a time: a percentile of a histogram is within 0.1 % of the exact one.
BUCKET_WIDTH = 0.001
PERCENTILES = (0.5, 0.9, 0.95, 0.99)


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Computed as vLLM's own benchmark computes them (`vllm bench serve`, vllm/benchmarks/serve.py).

    Percentiles by linear interpolation (numpy.percentile), population standard deviation (numpy.std).
    """

    n: int
    mean: float
    std: float
    p50: float
    p90: float
    p95: float
    p99: float


@dataclass(frozen=True, slots=True)
class TimingSummary:
    """Times in seconds, over the answers that report each time; None if none does.

    Times between tokens are over answers with more than one token, as in that benchmark (TPOT), and
    `tokens_per_second` is an answer's completion tokens by its total time. Reused answers took no time.
    """

    queue: Percentiles | None = None
    first_token: Percentiles | None = None
    between_tokens: Percentiles | None = None
    total: Percentiles | None = None
    tokens_per_second: Percentiles | None = None

    @property
    def mean(self) -> Timing:
        return Timing(
            self.total.mean if self.total else 0.0,
            self.queue.mean if self.queue else None,
            self.first_token.mean if self.first_token else None,
            self.between_tokens.mean if self.between_tokens else None,
        )


@dataclass(frozen=True, slots=True)
class TimeBucket:
    """`n` times of one kind (a field of TimingSummary) that differ by less than a bucket, and their sum."""

    name: str
    bucket: int
    n: int
    total: float


@dataclass(slots=True)
class TimingHistograms:
    """Counts of times by bucket (DDSketch; Masson, Rim & Lee 2019): memory for the buckets only."""

    buckets: dict[str, dict[int, tuple[int, float]]] = field(default_factory=lambda: defaultdict(dict))

    def add(self, rows: Sequence[TimeBucket]) -> None:
        for row in rows:
            n, total = self.buckets[row.name].get(row.bucket, (0, 0.0))
            self.buckets[row.name][row.bucket] = (n + row.n, total + row.total)

    def summary(self) -> TimingSummary:
        return TimingSummary(**{name: _percentiles(found) for name, found in self.buckets.items()})


def _percentiles(buckets: dict[int, tuple[int, float]]) -> Percentiles:
    ordered = [buckets[bucket] for bucket in sorted(buckets)]
    ends = list(accumulate(n for n, _ in ordered))
    # Each bucket's own mean, which is closer than its middle.
    values, count = [total / n for n, total in ordered], ends[-1]
    mean = math.fsum(total for _, total in ordered) / count
    squares = (n * (value - mean) ** 2 for (n, _), value in zip(ordered, values, strict=True))

    def percentile(share: float) -> float:
        position = share * (count - 1)
        # Ranks count from 0, so the first end above a rank is that of its bucket.
        low, high = (values[bisect_right(ends, end)] for end in (math.floor(position), math.ceil(position)))
        return low + (high - low) * (position - math.floor(position))

    return Percentiles(count, mean, math.sqrt(math.fsum(squares) / count), *map(percentile, PERCENTILES))
