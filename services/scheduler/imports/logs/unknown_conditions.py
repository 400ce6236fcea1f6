"""Names of evaluation conditions (docs/reference/conditions.md) that logs of other tools do not tell."""

from collections.abc import Mapping

# No tool has our digests of definitions and rules, or says how its server was started.
NEVER_KNOWN = (
    "definition",
    "scoring rules",
    "truncation",
    "chat template",
    "reasoning parser",
    "quantization",
)
# Of text that a model generates; a choice by log-likelihood has no such parameters.
OF_GENERATION = (
    "temperature",
    "top_p",
    "top_k",
    "max_tokens",
    "stop",
    "seed",
    "repetition_penalty",
    "context_tokens",
    "provider_params",
    "reasoning",
)
SHOTS = "shots"
LIMIT = "limit"
PROMPT_FORM = "prompt form"
AGENT = "agent"


def unknown_conditions(request: Mapping[str, object], *, is_generated: bool) -> tuple[str, ...]:
    """`request`: what is known of the requests, by the names of their fields."""
    of_request = ("prompt_form", *(OF_GENERATION if is_generated else ()))
    unknown = [name.replace("prompt_form", PROMPT_FORM) for name in of_request if name not in request]
    return (*NEVER_KNOWN, *unknown)
