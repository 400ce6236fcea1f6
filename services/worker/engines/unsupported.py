"""Rejects, by name, every parameter that an engine does not support: none is dropped silently."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from services.worker.engines.engine import RequestRefused, Sampling, UnsupportedRequest

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


# What only an engine with a chat template of its own can take.
TEMPLATE_FIELD = "chat_template_kwargs"
# For the books of a provider; they change no answer.
_OF_NO_ACCOUNT = frozenset(
    {
        "user",
        "metadata",
        "store",
        "service_tier",
        "safety_identifier",
        "prompt_cache_key",
        "prompt_cache_retention",
        "parallel_tool_calls",
    }
)
# What says the same as nothing.
_ASKS_NOTHING: Mapping[str, Collection[object]] = {
    "n": (1,),
    "best_of": (1,),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "echo": (False,),
    "suffix": ("",),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "logit_bias": ({},),
    "tools": ([],),
    "functions": ([],),
    "tool_choice": ("none", "auto"),
    "function_call": ("none", "auto"),
    "modalities": (["text"],),
}
# What is answered by more than one text.
_MORE_THAN_TEXT = frozenset(
    {"n", "best_of", "logprobs", "top_logprobs", "tools", "functions", "modalities", "audio"}
)


@dataclass(frozen=True, slots=True)
class JsonForm:
    """An answer in JSON: any, or as the schema says."""

    schema: Mapping[str, object] | None = None


def asked_by_row(sampling: Sampling) -> dict[str, object]:
    """Without what is of no account."""
    return {name: value for name, value in sampling.row_extra.items() if name not in _OF_NO_ACCOUNT}


def asks_for_more_than_text(sampling: Sampling) -> bool:
    asked = sampling.row_extra
    return any(name in asked and not _asks_nothing(name, asked[name]) for name in _MORE_THAN_TEXT)


def take_json_form(asked: dict[str, object]) -> JsonForm | None:
    """Takes `response_format` out of what is asked; None where there is none."""
    match asked.pop("response_format", None):
        case None | {"type": "text"}:
            return None
        case {"type": "json_object"}:
            return JsonForm()
        case {"type": "json_schema", "json_schema": {"schema": dict() as schema}}:
            return JsonForm(schema)
    raise RequestRefused("The line's response_format is neither text nor json_object nor a json_schema.")


def template_fields(sampling: Sampling) -> Mapping[str, object]:
    """What a row tells the chat template, such as whether the model is to think."""
    fields = sampling.row_extra.get(TEMPLATE_FIELD) or {}
    if not isinstance(fields, dict):
        raise RequestRefused(f"The line's {TEMPLATE_FIELD} is no JSON object.")
    return fields


def refuse_rest(asked: Mapping[str, object], provider: str) -> None:
    """`asked` is what nobody has taken out of it; what asks for nothing need not be taken."""
    rest = [name for name, value in asked.items() if not _asks_nothing(name, value)]
    if rest:
        raise RequestRefused(f"{provider} takes no {min(rest)} here; leave it out of the line.")


def _asks_nothing(name: str, value: object) -> bool:
    """False is no 0 here: one probability is less than none at all."""
    return any(
        value == nothing and isinstance(value, bool) == isinstance(nothing, bool)
        for nothing in _ASKS_NOTHING.get(name, ())
    )
