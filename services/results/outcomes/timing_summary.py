"""Mean, deviation and percentiles of the times of a run's answers."""

from dataclasses import dataclass

from proctor.values.usage import Timing


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
    """In seconds, over the answers that report each time; None if none does.

    Times between tokens are over answers with more than one token, as in that benchmark (TPOT), and
    `tokens_per_second` is an answer's generated tokens by its total time. Reused answers took no time.
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
