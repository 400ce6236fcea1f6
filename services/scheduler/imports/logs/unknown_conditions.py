"""Names of evaluation conditions (docs/reference/conditions.md) that logs of other tools do not tell."""

from collections.abc import Mapping

from services.scheduler.imports.logs.document import ORDERED_BELOW, as_count, as_number

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


def told_numbers(told: Mapping[str, object], names: Mapping[str, str]) -> dict[str, object]:
    """Numbers of the requests by the names of conditions: `names` by those of the log.

    What no order can have is left out, and so unknown.
    """
    found: dict[str, object] = {}
    for name, ours in names.items():
        number = as_number(told.get(name))
        if number is None or (ours == "max_tokens" and not as_count(number, below=ORDERED_BELOW)):
            continue
        is_whole = ours not in ("temperature", "top_p") and number == int(number)
        found[ours] = int(number) if is_whole or ours == "max_tokens" else number
    return found


def unknown_conditions(request: Mapping[str, object], *, is_generated: bool) -> tuple[str, ...]:
    """`request`: what is known of the requests, by the names of their fields."""
    of_request = ("prompt_form", *(OF_GENERATION if is_generated else ()))
    unknown = [name.replace("prompt_form", PROMPT_FORM) for name in of_request if name not in request]
    return (*NEVER_KNOWN, *unknown)
