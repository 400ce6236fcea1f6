"""The parameters of a row of a data set: applied over those of the run, or refused by name, never dropped."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import orjson

from proctor.values.providers.rules import ProviderRules
from proctor.values.row_fields import row_field_problem
from services.worker.engines.engine import Sampling
from services.worker.engines.errors import RequestRefused, UnsupportedRequest

# At most 64 MiB, with the bound below.
_MAX_CACHED_TEXTS = 4096
# Longer texts, such as those with schemas and tools, may differ in every row.
_MAX_CACHED_CHARACTERS = 16 * 1024
# Signed 64 bits, as which vLLM passes a seed on.
_SEEDS = 2**63
# Two names of one limit: the newer one comes last and wins.
_LIMITS = ("max_tokens", "max_completion_tokens")
# Only an engine that applies the chat template itself supports it.
TEMPLATE_FIELD = "chat_template_kwargs"
# Providers take these for their bookkeeping; they change no answer.
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


@dataclass(frozen=True, slots=True)
class RowParams:
    """`known` are fields of Sampling, `extra` are others; `refusal` is why they are invalid, a sentence."""

    known: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, object] = field(default_factory=dict)
    refusal: str = ""


def read_row_params(params_json: str) -> RowParams:
    """Thousands of rows share the same parameters, so short texts are cached.

    A null counts as absent, as in the protocol.
    """
    return _kept(params_json) if len(params_json) <= _MAX_CACHED_CHARACTERS else _read(params_json)


def _read(params_json: str) -> RowParams:
    try:
        document = orjson.loads(params_json)
        if not isinstance(document, dict):
            return RowParams(refusal="The line's parameters are not a JSON object.")
        given = {name: value for name, value in document.items() if value is not None}
        limits = [(name, given.pop(name)) for name in _LIMITS if name in given]
        known = {name: read(name, given.pop(name)) for name, read in _READERS.items() if name in given}
        # The newer name wins where a line has both, as at OpenAI.
        if limits:
            name, value = limits[-1]
            known["max_tokens"] = _limit(name, value)
            if name != _LIMITS[0]:
                known["max_tokens_name"] = name
        # Checked at the upload too, but a shard may come from elsewhere.
        for name, value in given.items():
            if problem := row_field_problem(name, value):
                return RowParams(refusal=f"The line is refused: {problem}")
    except orjson.JSONDecodeError:
        return RowParams(refusal="The line's parameters are not valid JSON.")
    except RequestRefused as refusal:
        return RowParams(refusal=str(refusal))
    return RowParams(known, given)


_kept = lru_cache(maxsize=_MAX_CACHED_TEXTS)(_read)


def apply_row_params(params: RowParams, sampling: Sampling, rollout: int) -> Sampling:
    """The row wins, field by field. Rollout n adds n to the seed of a row, as to that of a run."""
    known = params.known
    laid = replace(sampling, row_extra=params.extra, **known)
    if laid.seed is None or "seed" not in known:
        return laid
    return replace(laid, seed=laid.seed + rollout)


def _number(name: str, value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise RequestRefused(f"The line's {name} is not a number.")
    return value


def _whole(name: str, value: object) -> int:
    number = _number(name, value)
    if not float(number).is_integer():
        raise RequestRefused(f"The line's {name} is not a whole number.")
    return int(number)


def _limit(name: str, value: object) -> int:
    limit = _whole(name, value)
    if limit < 1:
        raise RequestRefused(f"The line's {name} is below 1.")
    return limit


def _seed(name: str, value: object) -> int:
    seed = _whole(name, value)
    if not -_SEEDS <= seed < _SEEDS:
        raise RequestRefused(f"The line's {name} needs more than 64 bits.")
    return seed


def _stops(name: str, value: object) -> tuple[str, ...]:
    stops = value if isinstance(value, list) else [value]
    if not all(isinstance(stop, str) for stop in stops):
        raise RequestRefused(f"The line's {name} is neither a text nor a list of texts.")
    return tuple(stops)


_READERS: Mapping[str, Callable[[str, object], object]] = {
    "temperature": _number,
    "top_p": _number,
    "top_k": _whole,
    "seed": _seed,
    "stop": _stops,
    "repetition_penalty": _number,
}


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
    source = "the line" if sampling.is_row else "the run's parameters"
    return RequestRefused(f"{provider} takes no {name}; leave it out of {source}.")


def refuse_constraint(sampling: Sampling, provider: str) -> None:
    if sampling.allowed_texts:
        raise UnsupportedRequest(f"{provider} constrains no answer; order the scoring method generate.")


def row_fields(sampling: Sampling) -> dict[str, object]:
    """The row's further fields without the ignored ones."""
    return {name: value for name, value in sampling.row_extra.items() if name not in _IGNORED_FIELDS}


def needs_full_response(sampling: Sampling) -> bool:
    fields = sampling.row_extra
    # Looked at first: samples of suites have none, and there are millions of them.
    return bool(fields) and any(
        name in fields and not _is_no_op(name, fields[name]) for name in _MORE_THAN_TEXT
    )


def pop_json_schema(fields: dict[str, object]) -> Mapping[str, object] | None:
    """Removes `response_format` from the fields; None where it asks for no JSON, empty for any JSON."""
    match fields.pop("response_format", None):
        case None | {"type": "text"}:
            return None
        case {"type": "json_object"}:
            return {}
        case {"type": "json_schema", "json_schema": {"schema": dict() as schema}}:
            return schema
    raise RequestRefused("The line's response_format is neither text nor json_object nor a json_schema.")


def template_fields(sampling: Sampling) -> Mapping[str, object]:
    """The row's fields for the chat template, such as whether the model is to think."""
    fields = sampling.row_extra.get(TEMPLATE_FIELD) or {}
    if not isinstance(fields, dict):
        raise RequestRefused(f"The line's {TEMPLATE_FIELD} is not a JSON object.")
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
