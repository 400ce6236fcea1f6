"""The parameters of a row of a data set: parsed once for each text, and applied over those of the run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

import orjson

from services.worker.engines.engine import RequestRefused, Sampling

_KEPT_TEXTS = 4096
# Longer texts, such as those with schemas and tools, may differ in every row.
_LONGEST_KEPT = 16 * 1024
_SEEDS = 2**63
# Two names of one limit: the newer one comes last and wins.
_LIMITS = ("max_tokens", "max_completion_tokens")


@dataclass(frozen=True, slots=True)
class RowParams:
    """The parsed parameters; `refusal` says in one sentence why they are invalid."""

    known: Mapping[str, object] = field(default_factory=dict)
    extra: Mapping[str, object] = field(default_factory=dict)
    refusal: str = ""


def read_row_params(params_json: str) -> RowParams:
    """Thousands of rows share the same parameters, so short texts are cached.

    A null counts as absent, as in the protocol.
    """
    return _kept(params_json) if len(params_json) <= _LONGEST_KEPT else _read(params_json)


def _read(params_json: str) -> RowParams:
    try:
        document = orjson.loads(params_json)
        if not isinstance(document, dict):
            return RowParams(refusal="The line's parameters are no JSON object.")
        given = {name: value for name, value in document.items() if value is not None}
        limits = [given.pop(name) for name in _LIMITS if name in given]
        known = {name: read(name, given.pop(name)) for name, read in _READERS.items() if name in given}
        if limits:
            known["max_tokens"] = _limit("max_tokens", limits[-1])
    except orjson.JSONDecodeError:
        return RowParams(refusal="The line's parameters are no valid JSON.")
    except RequestRefused as refusal:
        return RowParams(refusal=str(refusal))
    return RowParams(known, given)


_kept = lru_cache(maxsize=_KEPT_TEXTS)(_read)


def apply_row_params(params: RowParams, sampling: Sampling, rollout: int) -> Sampling:
    """The row wins, field by field. Rollout n adds n to the seed of a row, as to that of a run."""
    known = params.known
    laid = replace(sampling, row_extra=params.extra, **known)  # type: ignore[arg-type]  # as _READERS has them
    if laid.seed is None or "seed" not in known:
        return laid
    return replace(laid, seed=laid.seed + rollout)


def _number(name: str, value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise RequestRefused(f"The line's {name} is no number.")
    return value


def _whole(name: str, value: object) -> int:
    number = _number(name, value)
    if not float(number).is_integer():
        raise RequestRefused(f"The line's {name} is no whole number.")
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
