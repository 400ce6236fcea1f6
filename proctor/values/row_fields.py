"""Fields of a request that a row of a data set may set, by name, type and size, and parts of messages.

The list is checked when a file is uploaded, and again by the worker that asks. A row chooses neither the chat
template nor what costs more than its tokens, and makes no server fetch an address.
Decision record: docs/decisions/0014-rows-keep-their-own-parameters.md.
"""

import json
import math
import re
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TypeGuard

from proctor.values.plain import MAX_LEVELS, is_shallow

# All choices of a row are one outcome, in one message.
MAX_CHOICES = 8
# The bound of the OpenAI protocol. Chat templates may take the square of it.
MAX_MESSAGES = 2048
# The bound of the OpenAI protocol.
MAX_TOP_LOGPROBS = 20
MAX_CONTEXT_TOKENS = 128 * 1024
# The size of a field with structure, as JSON.
MAX_FIELD_BYTES = 256 * 1024
# The name of an uploaded file; most file systems take no longer one.
MAX_UPLOAD_NAME_CHARACTERS = 255
# How much of a file is sent for its preview: a Parquet file has one only as a whole.
MAX_PREVIEWED_UPLOAD_BYTES = 2 * 1024 * 1024
# The id of a row; an exported test file can be uploaded again.
MAX_ROW_ID_CHARACTERS = 512
_MAX_ITEMS = 4096
_MAX_TEXT_CHARACTERS = 4096
_SHORT_TEXT = 512
_MAX_TEMPLATE_FIELDS = 32
_TEMPLATE_FIELD_NAME = re.compile(r"[A-Za-z_]\w{0,63}", re.ASCII)
# Parameters of a tokenizer's own `apply_chat_template`; a template reads other names.
_TOKENIZER_FIELDS = frozenset(
    [
        *("conversation", "messages", "chat_template", "tools", "documents", "tokenize", "tokenizer_kwargs"),
        *("add_generation_prompt", "continue_final_message", "padding", "truncation", "max_length"),
        *("return_tensors", "return_dict", "return_assistant_tokens_mask", "tokenizer", "processor_kwargs"),
    ]
)

# Returns what the value must be; "" if it is valid.
_Check = Callable[[object], str]
_PART_TYPES = ("text", "refusal", "image_url", "input_audio")


def row_field_problem(name: str, value: object) -> str:
    """Why a row may not set a field of its body to this value, as a sentence; "" if it may. Null is unset."""
    if value is None:
        return ""
    check = _CHECKS.get(name)
    if check is None:
        return f"{name:.60} is not a parameter that a row may set."
    wanted = check(value)
    return f"{name} must be {wanted}." if wanted else ""


def content_part_problem(part: object) -> str:
    """Why a message may not have this part, as a sentence; "" if it may."""
    if not isinstance(part, Mapping) or not isinstance(part.get("type"), str):
        return "A part of content must be an object with a type, such as text."
    kind = part["type"]
    if kind not in _PART_TYPES:
        return f"A part of content has the type {', '.join(_PART_TYPES)}, not {kind:.60}."
    if kind != "image_url":
        return ""
    image = part.get("image_url")
    address = image.get("url") if isinstance(image, Mapping) else image
    if isinstance(address, str) and address.startswith("data:"):
        return ""
    return "An image is written into its line, as data:image/…: no server fetches an address for a row."


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _number(value: object) -> str:
    return "" if _is_number(value) else "a number"


def _switch(value: object) -> str:
    return "" if isinstance(value, bool) else "true or false"


def _whole(value: object, *, minimum: int, maximum: int) -> str:
    is_within = _is_number(value) and minimum <= value <= maximum and float(value).is_integer()
    return "" if is_within else f"a whole number from {minimum} to {maximum}"


def _logprobs(value: object) -> str:
    if isinstance(value, bool):
        return ""
    wanted = _whole(value, minimum=0, maximum=MAX_TOP_LOGPROBS)
    return f"true, false or {wanted}" if wanted else ""


def _text(value: object, *, maximum: int = _SHORT_TEXT) -> str:
    is_short = isinstance(value, str) and len(value) <= maximum
    return "" if is_short else f"a text of at most {maximum} characters"


def _list_of(value: object, *, item: _Check) -> str:
    if not isinstance(value, list) or len(value) > _MAX_ITEMS:
        return f"a list of at most {_MAX_ITEMS} values"
    wanted = next((problem for each in value if (problem := item(each))), "")
    return f"a list, each of it {wanted}" if wanted else ""


def _stops(value: object) -> str:
    return "" if isinstance(value, str) and not _text(value, maximum=_MAX_TEXT_CHARACTERS) else _TEXTS(value)


def _structure(value: object) -> str:
    is_nested = isinstance(value, dict | list)
    if is_nested and is_shallow(value) and len(json.dumps(value)) <= MAX_FIELD_BYTES:
        return ""
    return f"a list or an object of at most {MAX_FIELD_BYTES // 1024} KiB and {MAX_LEVELS} levels"


def _structured_outputs(value: object) -> str:
    """The parts have the bounds of the fields that were separate in older releases of vLLM."""
    if not isinstance(value, Mapping):
        return "an object"
    for name, part in value.items():
        check = _STRUCTURED_OUTPUTS.get(name)
        if check is None:
            return f"without {name:.60}"
        if part is not None and (wanted := check(part)):
            return f"an object with {wanted} as its {name}"
    return ""


def _one_of(value: object, *, allowed: Collection[object]) -> str:
    is_allowed = any(value == each and isinstance(value, bool) == isinstance(each, bool) for each in allowed)
    return "" if is_allowed else " or ".join(json.dumps(each) for each in allowed)


def _numbers_by_token(value: object) -> str:
    is_small = (
        isinstance(value, Mapping) and len(value) <= _MAX_ITEMS and all(map(_is_number, value.values()))
    )
    return "" if is_small else f"an object of at most {_MAX_ITEMS} numbers"


def _tools(value: object) -> str:
    """Functions only: a tool that the provider runs itself has a price of its own, or fetches addresses."""
    tools = value if isinstance(value, list) else [value]
    if all(isinstance(tool, Mapping) and tool.get("type") == "function" for tool in tools):
        return _structure(tools)
    return "functions, each with the type function"


def _tool_choice(value: object) -> str:
    return _text(value) if isinstance(value, str) else _tools(value)


def _template_fields(value: object) -> str:
    if not isinstance(value, Mapping) or len(value) > _MAX_TEMPLATE_FIELDS:
        return f"an object of at most {_MAX_TEMPLATE_FIELDS} fields"
    for name, field in value.items():
        if name in _TOKENIZER_FIELDS or not _TEMPLATE_FIELD_NAME.fullmatch(name):
            return f"without {name:.60}: a row chooses values for a template, not the template"
        if not (field is None or isinstance(field, bool) or _is_number(field) or not _text(field)):
            return f"an object of switches, numbers and texts of at most {_SHORT_TEXT} characters"
    return ""


_TEXTS = partial(_list_of, item=partial(_text, maximum=_MAX_TEXT_CHARACTERS))
_PATTERN = partial(_text, maximum=_MAX_TEXT_CHARACTERS)
_STRUCTURED_OUTPUTS: Mapping[str, _Check] = {
    "json": lambda value: (
        _text(value, maximum=MAX_FIELD_BYTES) if isinstance(value, str) else _structure(value)
    ),
    "choice": _TEXTS,
    **dict.fromkeys(("regex", "grammar", "structural_tag"), _PATTERN),
    "whitespace_pattern": _text,
    **dict.fromkeys(("json_object", "disable_fallback", "disable_any_whitespace"), _switch),
    "disable_additional_properties": _switch,
}
_TOKENS = partial(_list_of, item=partial(_whole, minimum=0, maximum=2**31))

_CHECKS: Mapping[str, _Check] = {
    # Read by the worker, which refuses what is out of range with a sentence of its own.
    **dict.fromkeys(("max_tokens", "max_completion_tokens", "min_tokens", "seed", "top_k"), _number),
    **dict.fromkeys(("temperature", "top_p", "min_p", "typical_p", "repetition_penalty"), _number),
    **dict.fromkeys(("presence_penalty", "frequency_penalty", "repeat_last_n"), _number),
    "stop": _stops,
    "bad_words": _TEXTS,
    **dict.fromkeys(("stop_token_ids", "allowed_token_ids"), _TOKENS),
    "logit_bias": _numbers_by_token,
    **dict.fromkeys(("ignore_eos", "skip_special_tokens", "spaces_between_special_tokens"), _switch),
    **dict.fromkeys(("include_stop_str_in_output", "parallel_tool_calls"), _switch),
    "logprobs": _logprobs,
    "top_logprobs": partial(_whole, minimum=0, maximum=MAX_TOP_LOGPROBS),
    "n": partial(_whole, minimum=1, maximum=MAX_CHOICES),
    **dict.fromkeys(("response_format", "guided_json"), _structure),
    "structured_outputs": _structured_outputs,
    "guided_choice": _TEXTS,
    **dict.fromkeys(("guided_regex", "guided_grammar", "suffix"), _PATTERN),
    "chat_template_kwargs": _template_fields,
    "tools": _tools,
    "functions": _structure,
    **dict.fromkeys(("tool_choice", "function_call"), _tool_choice),
    "think": lambda value: "" if isinstance(value, bool) else _text(value),
    **dict.fromkeys(("reasoning_effort", "verbosity"), _text),
    "num_ctx": partial(_whole, minimum=1, maximum=MAX_CONTEXT_TOKENS),
    # For a provider's records; they change no answer.
    **dict.fromkeys(("user", "safety_identifier", "prompt_cache_key", "prompt_cache_retention"), _text),
    "metadata": _structure,
    "stream_options": _structure,
    # Only the value that asks for nothing: any other costs more, or keeps the answer at the provider.
    "best_of": partial(_one_of, allowed=(1,)),
    "echo": partial(_one_of, allowed=(False,)),
    "store": partial(_one_of, allowed=(False,)),
    "service_tier": partial(_one_of, allowed=("auto", "default", "flex")),
    "modalities": partial(_one_of, allowed=(["text"],)),
}
