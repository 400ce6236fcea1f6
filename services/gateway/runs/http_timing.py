"""How the times of a run's answers are spread, as it goes out over HTTP; what no answer tells is left out."""

from pydantic import BaseModel, Field

from proctor.v1 import summary_pb2


class Spread(BaseModel):
    n: int = Field(description="Answers that tell it")
    mean: float
    std: float
    p50: float
    p90: float
    p95: float
    p99: float


class TimingBody(BaseModel):
    """Of the answers that were asked for in the run itself; percentiles by linear interpolation."""

    queue_seconds: Spread | None = Field(default=None, description="From acceptance to the engine's start")
    first_token_seconds: Spread | None = Field(
        default=None, description="To the first token; over HTTP only of streamed answers"
    )
    between_tokens_seconds: Spread | None = Field(
        default=None, description="Mean between the tokens of an answer after its first"
    )
    total_seconds: Spread | None = Field(default=None, description="To the last token")
    tokens_per_second: Spread | None = Field(
        default=None, description="Generated tokens of an answer by its total time"
    )


def timing_body(timing: summary_pb2.TimingSummary) -> TimingBody:
    return TimingBody(
        queue_seconds=_spread(timing.queue) if timing.HasField("queue") else None,
        first_token_seconds=_spread(timing.first_token) if timing.HasField("first_token") else None,
        between_tokens_seconds=_spread(timing.between_tokens) if timing.HasField("between_tokens") else None,
        total_seconds=_spread(timing.total) if timing.HasField("total") else None,
        tokens_per_second=_spread(timing.tokens_per_second) if timing.HasField("tokens_per_second") else None,
    )


def _spread(told: summary_pb2.Percentiles) -> Spread:
    return Spread(
        n=told.n, mean=told.mean, std=told.std, p50=told.p50, p90=told.p90, p95=told.p95, p99=told.p99
    )
