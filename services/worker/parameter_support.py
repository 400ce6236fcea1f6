"""What an engine cannot do is refused in words, never left out in silence.

The scheduler knows the same and refuses the order (`services/scheduler/pools/provider_rules.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from services.worker.engine import RequestRefused, Sampling, UnsupportedRequest

# The size of its context is vLLM's own; of vLLM's own parameters a run may pass these on.
VLLM_UNKNOWN = ("context_tokens",)
VLLM_EXTRA = frozenset(
    {
        "min_p",
        "presence_penalty",
        "frequency_penalty",
        "min_tokens",
        "ignore_eos",
        "stop_token_ids",
        "bad_words",
    }
)


def refuse_parameters(sampling: Sampling, unknown: Sequence[str], provider: str) -> None:
    """Refuses the first of these parameters that was set."""
    for name in unknown:
        if getattr(sampling, name) is not None:
            place = "the line" if sampling.is_row else "the run's parameters"
            raise RequestRefused(f"{provider} takes no {name}; leave it out of {place}.")


def refuse_constraint(sampling: Sampling, provider: str) -> None:
    if sampling.allowed_texts:
        raise UnsupportedRequest(f"{provider} constrains no answer; order the scoring method generate.")
