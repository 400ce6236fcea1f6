"""What a server answered to one request, and how long it took: the times of what is read from it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from services.worker import engine
from services.worker.json_answers import Json


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """The document, with its times from sending; the first token's only where it was streamed."""

    document: Json
    total_seconds: float
    first_token_seconds: float | None = None
    # What was thought was streamed as well, so that the first token is the first of all that are counted.
    shows_thoughts: bool = False

    def timed(self, generated: engine.Generated) -> engine.Generated:
        usage = generated.usage
        tokens = usage.completion_tokens - (0 if self.shows_thoughts else usage.reasoning_tokens)
        timing = engine.Timing(
            first_token_seconds=self.first_token_seconds,
            between_tokens_seconds=between_tokens(self.first_token_seconds, self.total_seconds, tokens),
            total_seconds=self.total_seconds,
        )
        return replace(generated, timing=timing)


def between_tokens(first: float | None, total: float, tokens: int) -> float | None:
    """The mean after the first token, as vLLM's own benchmark takes it (vllm/benchmarks/serve.py: TPOT)."""
    return None if first is None or tokens < 2 else (total - first) / (tokens - 1)
