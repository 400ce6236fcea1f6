"""Rejects, by name, every parameter that an engine does not support: none is dropped silently."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from proctor.values.providers import ProviderRules
from services.worker.engines.engine import RequestRefused, Sampling, UnsupportedRequest

# Only an engine that applies the chat template itself supports it.
TEMPLATE_FIELD = "chat_template_kwargs"
# For the bookkeeping of a provider; they change no answer.
_IGNORED_FIELDS = frozenset(
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
# Values that mean the same as an absent field.
_NO_OP_VALUES: Mapping[str, Collection[object]] = {
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
# Fields whose answer is more than one text.
_MORE_THAN_TEXT = frozenset(
    {"n", "best_of", "logprobs", "top_logprobs", "tools", "functions", "modalities", "audio"}
)


def refuse_parameters(sampling: Sampling, rules: ProviderRules) -> None:
    """Refuses the first parameter that is set and that the provider does not take."""
    for name in sorted(rules.unknown):
        if getattr(sampling, name) is not None:
            raise _not_taken(sampling, name, rules.name)


def refuse_temperature(sampling: Sampling, rules: ProviderRules) -> None:
    """Accepts the greedy default of suites; a row's own temperature is applied or refused."""
    accepted = {rules.only_temperature} if sampling.is_row else rules.temperatures
    if rules.only_temperature is not None and sampling.temperature not in {None, *accepted}:
        raise _not_taken(sampling, "temperature", rules.name)


def _not_taken(sampling: Sampling, name: str, provider: str) -> RequestRefused:
    place = "the line" if sampling.is_row else "the run's parameters"
    return RequestRefused(f"{provider} takes no {name}; leave it out of {place}.")


def refuse_constraint(sampling: Sampling, provider: str) -> None:
    if sampling.allowed_texts:
        raise UnsupportedRequest(f"{provider} constrains no answer; order the scoring method generate.")


@dataclass(frozen=True, slots=True)
class JsonFormat:
    """The answer is to be JSON: any, or as the schema says."""

    schema: Mapping[str, object] | None = None


def row_fields(sampling: Sampling) -> dict[str, object]:
    """The row's further fields without the ignored ones."""
    return {name: value for name, value in sampling.row_extra.items() if name not in _IGNORED_FIELDS}


def needs_full_response(sampling: Sampling) -> bool:
    fields = sampling.row_extra
    return any(name in fields and not _is_no_op(name, fields[name]) for name in _MORE_THAN_TEXT)


def pop_json_format(fields: dict[str, object]) -> JsonFormat | None:
    """Removes `response_format` from the fields; None where it asks for no JSON."""
    match fields.pop("response_format", None):
        case None | {"type": "text"}:
            return None
        case {"type": "json_object"}:
            return JsonFormat()
        case {"type": "json_schema", "json_schema": {"schema": dict() as schema}}:
            return JsonFormat(schema)
    raise RequestRefused("The line's response_format is neither text nor json_object nor a json_schema.")


def template_fields(sampling: Sampling) -> Mapping[str, object]:
    """The row's fields for the chat template, such as whether the model is to think."""
    fields = sampling.row_extra.get(TEMPLATE_FIELD) or {}
    if not isinstance(fields, dict):
        raise RequestRefused(f"The line's {TEMPLATE_FIELD} is no JSON object.")
    return fields


def refuse_unsupported(fields: Mapping[str, object], provider: str) -> None:
    """Refuses the fields that the engine has not popped, unless they are no-ops."""
    rest = [name for name, value in fields.items() if not _is_no_op(name, value)]
    if rest:
        raise RequestRefused(f"{provider} takes no {min(rest)} here; leave it out of the line.")


def _is_no_op(name: str, value: object) -> bool:
    """False and 0 differ here: `logprobs: 0` asks for log-probabilities, False does not."""
    return any(
        value == nothing and isinstance(value, bool) == isinstance(nothing, bool)
        for nothing in _NO_OP_VALUES.get(name, ())
    )
