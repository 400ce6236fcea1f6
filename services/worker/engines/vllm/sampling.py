"""Sampling parameters of a run or of a row of a data set as vLLM's SamplingParams."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError
from vllm import SamplingParams
from vllm.exceptions import VLLMClientError
from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams

from proctor.values.providers.rules import RULES
from services.worker.engines import engine
from services.worker.engines.errors import RequestRefused
from services.worker.engines.row_params import (
    TEMPLATE_FIELD,
    pop_json_schema,
    refuse_parameters,
    refuse_unsupported,
    row_fields,
)
from services.worker.engines.tool_calls import pop_tools
from services.worker.engines.vllm.error_text import reason_in_error

_RULES = RULES["vllm"]
_PARAMETERS = {
    name: name
    for name in ("temperature", "max_tokens", "top_p", "top_k", "seed", "repetition_penalty", "stop")
}
# The bound of the OpenAI protocol; each is a sequence of the engine's.
_MAX_COMPLETIONS = 128
# The protocol's bound; larger values count as this.
_MAX_BIAS = 100.0
# vLLM checks these first in the engine's process, which a value of another type would kill.
_ROW_TYPES: Mapping[str, TypeAdapter[Any]] = {
    "n": TypeAdapter(Annotated[int, Field(ge=1, le=_MAX_COMPLETIONS)]),
    "min_p": TypeAdapter(float),
    "presence_penalty": TypeAdapter(float),
    "frequency_penalty": TypeAdapter(float),
    "logit_bias": TypeAdapter(dict[str, float]),
    "min_tokens": TypeAdapter(int),
    "ignore_eos": TypeAdapter(bool),
    "stop_token_ids": TypeAdapter(list[int]),
    "allowed_token_ids": TypeAdapter(list[int]),
    "bad_words": TypeAdapter(list[str]),
    "skip_special_tokens": TypeAdapter(bool),
    "spaces_between_special_tokens": TypeAdapter(bool),
    "include_stop_str_in_output": TypeAdapter(bool),
    "structured_outputs": TypeAdapter(dict[str, Any]),
}
_TOP_LOGPROBS = TypeAdapter(Annotated[int, Field(ge=0)])


def generation_params(
    sampling: engine.Sampling, defaults: Mapping[str, object], *, keeps_special_tokens: bool = False
) -> SamplingParams:
    """`defaults` come from the model's generation_config; they apply to rows, as in `vllm serve`.

    `keeps_special_tokens`: the texts have them, unless the row says otherwise.
    """
    refuse_parameters(sampling, _RULES)
    if unknown := sorted(sampling.extra.keys() - (_RULES.extra or {}).keys()):
        raise RequestRefused(f"{_RULES.name} does not know the parameter {unknown[0]}.")
    chosen = sampling.named(_PARAMETERS)
    if "stop" in chosen:
        chosen["stop"] = list(sampling.stop)  # vLLM takes no other sequence.
    try:
        asked = _row_fields(sampling)
        if sampling.is_row:
            # Without a limit an answer may be as long as the context.
            chosen = {"max_tokens": None, **defaults, **sampling.extra, **chosen}
        if keeps_special_tokens:
            asked.setdefault("skip_special_tokens", False)
        if sampling.allowed_texts:
            asked["structured_outputs"] = StructuredOutputsParams(choice=list(sampling.allowed_texts))
        # Used for one request only, so vLLM need not copy it.
        return SamplingParams(
            output_kind=RequestOutputKind.FINAL_ONLY, skip_clone=True, **{**sampling.extra, **chosen, **asked}
        )
    except (VLLMClientError, ValueError, TypeError) as error:
        reason = reason_in_error(str(error)) or type(error).__name__
        raise RequestRefused(f"{_RULES.name} refuses the sampling parameters: {reason}") from error


def _row_fields(sampling: engine.Sampling) -> dict[str, Any]:
    if not sampling.row_extra:
        return {}
    asked = row_fields(sampling)
    asked.pop(TEMPLATE_FIELD, None)
    tools = pop_tools(asked)
    if tools is not None and asked.get("n", 1) != 1:
        raise RequestRefused(f"{_RULES.name} gives one answer where there are tools; leave out n.")
    schema = pop_json_schema(asked)
    fields = {name: _read(name, asked.pop(name), kind) for name, kind in _ROW_TYPES.items() if name in asked}
    fields |= _logprobs(asked)
    refuse_unsupported(asked, _RULES.name)
    if "logit_bias" in fields:
        fields["logit_bias"] = {int(token): _bias(bias) for token, bias in fields["logit_bias"].items()}
    if "structured_outputs" in fields:
        fields["structured_outputs"] = StructuredOutputsParams(**fields["structured_outputs"])
    if tools is not None:
        # The marks of a call are special tokens in some vocabularies.
        fields["skip_special_tokens"] = False
    if schema is not None:
        constraint = {"json": dict(schema)} if schema else {"json_object": True}
        fields["structured_outputs"] = StructuredOutputsParams(**constraint)
    return fields


def _logprobs(asked: dict[str, object]) -> dict[str, Any]:
    """How many of the likeliest tokens are returned with each token; chats use two fields for it."""
    if "logprobs" not in asked:
        return {}
    wanted = asked.pop("logprobs")
    if wanted is False:
        return {}
    if not isinstance(wanted, bool):
        return {"logprobs": _read("logprobs", wanted, _TOP_LOGPROBS)}
    return {"logprobs": _read("top_logprobs", asked.pop("top_logprobs", 0), _TOP_LOGPROBS)}


def _bias(bias: float) -> float:
    return min(_MAX_BIAS, max(-_MAX_BIAS, bias))


def _read(name: str, value: object, kind: TypeAdapter[Any]) -> Any:
    try:
        return kind.validate_python(value, strict=True)
    except ValidationError as error:
        reason = error.errors(include_url=False, include_input=False)[0]["msg"]
        raise RequestRefused(f"The line's {name} cannot be used: {reason}.") from error
