"""What an engine cannot do is refused in words, never left out in silence."""

from __future__ import annotations

from collections.abc import Sequence

from services.worker.engine import RequestRefused, Sampling, UnsupportedRequest


def refuse_parameters(sampling: Sampling, unknown: Sequence[str], provider: str) -> None:
    """Refuses the first of these parameters that was set."""
    for name in unknown:
        if getattr(sampling, name) is not None:
            raise RequestRefused(f"{provider} takes no {name}; leave it out of the run's parameters.")


def refuse_constraint(sampling: Sampling, provider: str) -> None:
    if sampling.allowed_texts:
        raise UnsupportedRequest(f"{provider} constrains no answer; order the scoring method generate.")
