"""Checks an order by itself: ranges, sizes and texts of its fields."""

import json
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict

from proctor.values.generation import PARAMETER_RANGES, Problem, Range
from proctor.values.providers.pools_file import MAX_MODEL_CHARACTERS
from proctor.values.providers.rules import MAX_ROLLOUTS
from proctor.values.run import MAX_WINDOW_SECONDS, MIN_WINDOW_SECONDS
from proctor.values.sample import MAX_FEWSHOT
from services.common.checked_fields import nul_problem
from services.common.secret_names import secret_word_in
from services.scheduler.runs.orders.run_order import MAX_JUDGES, RunOrder

# Its parameters go out with every shard.
MAX_ORDER_BYTES = 64 * 1024

_ASKED = {"model", "prompt", "messages", "stream", "stream_options", "n", "best_of", "echo", "stop"}
_SAMPLING = {"temperature", "top_p", "top_k", "seed", "repetition_penalty"}
_LENGTHS = {"max_tokens", "max_completion_tokens"}
_PROBABILITIES = {"logprobs", "top_logprobs", "prompt_logprobs"}
# Fields of a request that Proctor sets itself: a parameter of this name would ask something else.
OWN_FIELDS = frozenset(_ASKED | _SAMPLING | _LENGTHS | _PROBABILITIES)

_ALL_ROWS = " Leave it out to take all rows."
_NO_LIMIT = " Leave it out for no limit."
_NO_WINDOW = " Leave it out for the limit of a run."


def first_problem(order: RunOrder) -> Problem | None:
    """The first number of an order that is out of its range."""
    params = order.params
    checks = (
        (Range("project_id", 0), order.project_id),
        (Range("limit", 1, advice=_ALL_ROWS), order.limit),
        (Range("num_fewshot", 0, MAX_FEWSHOT), order.num_fewshot),
        (Range("rollouts", 1, MAX_ROLLOUTS), order.rollouts),
        (Range("max_cost", 0, above=True, advice=_NO_LIMIT), order.max_cost),
        (
            Range("completion_window_seconds", MIN_WINDOW_SECONDS, MAX_WINDOW_SECONDS, advice=_NO_WINDOW),
            order.completion_window_seconds,
        ),
        *((limits, getattr(params, name)) for name, limits in PARAMETER_RANGES.items()),
    )
    out_of_range = next((problem for range_, value in checks if (problem := range_.problem(value))), None)
    return (
        # Size first: the checks behind it walk through all that was sent.
        _size_problem(order)
        or _benchmark_problem(order)
        or _judges_problem(order)
        or out_of_range
        or _text_problem(order)
        or _provider_params_problem(params.provider_params)
    )


def _benchmark_problem(order: RunOrder) -> Problem | None:
    """An order names a suite, a data set or a run to judge; some fields are for data sets only."""
    if order.judge and (order.suite or order.dataset_id):
        sentence = "The order judges a run and names a suite or a data set."
        return Problem("judge", f"{sentence} Leave one of the two out.")
    if order.judge:
        return _judge_problem(order)
    if order.suite and order.dataset_id:
        sentence = f"The order names the suite {order.suite} and the data set {order.dataset_id}."
        return Problem("dataset_id", f"{sentence} Leave one of the two out.")
    if not order.suite and not order.dataset_id:
        return Problem("suite", "The order names neither a suite nor a data set. Name one of the two.")
    of_datasets = {"metrics": order.metrics, "line_models": order.line_models}
    found = next((field for field, value in of_datasets.items() if value and order.suite), None)
    if found:
        return Problem(found, f"{found} is only for data sets; a suite defines its own. Leave it out.")
    return None


def _judge_problem(order: RunOrder) -> Problem | None:
    """What is judged is all in the judged run, and how in the judge prompt."""
    not_taken = {
        "tasks": order.tasks,
        "num_fewshot": order.num_fewshot is not None,
        "scoring_method": order.scoring_method,
        "metrics": order.metrics,
        "line_models": order.line_models,
    }
    found = next((field for field, value in not_taken.items() if value), None)
    return Problem(found, f"An order that judges a run has no {found}. Leave it out.") if found else None


def _judges_problem(order: RunOrder) -> Problem | None:
    if order.judge and order.judges:
        return Problem("judges", "An order that judges a run names no judges of its own. Leave them out.")
    if order.judges and order.without_judges:
        return Problem("without_judges", "The order names judges and is without judges. Leave one out.")
    if len(order.judges) > MAX_JUDGES:
        count = len(order.judges)
        return Problem("judges", f"The order names {count} judges, but may name at most {MAX_JUDGES}.")
    return None


def _size_problem(order: RunOrder) -> Problem | None:
    sizes = {name: _bytes_of(value) for name, value in asdict(order).items()}
    total = sum(sizes.values())
    if total <= MAX_ORDER_BYTES:
        return None
    largest = max(sizes, key=lambda name: sizes[name])
    sentence = f"The order takes {total} bytes, but may take at most {MAX_ORDER_BYTES}."
    return Problem(largest, f"{sentence} Shorten {largest}, which takes {sizes[largest]} of them.")


def _bytes_of(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode(errors="replace"))


def _text_problem(order: RunOrder) -> Problem | None:
    texts = {
        "suite": (order.suite,),
        "dataset_id": (order.dataset_id,),
        "model": (order.model,),
        "tasks": order.tasks,
        "line_models": order.line_models,
        "judge": [*asdict(order.judge).values()] if order.judge else (),
        "judges": [text for judge in order.judges for text in asdict(judge).values()],
        "metrics": [text for use in order.metrics for text in (use.name, use.options_json)],
    }
    found = (problem for field, values in texts.items() if (problem := nul_problem(field, *map(str, values))))
    return next(found, None) or _model_problem(order.model)


def _model_problem(model: str) -> Problem | None:
    """A name becomes a part of addresses, subjects and log lines."""
    if len(model) > MAX_MODEL_CHARACTERS:
        sentence = f"model has {len(model)} characters, but must have at most {MAX_MODEL_CHARACTERS}."
        return Problem("model", sentence)
    odd = next((character for character in model if not character.isprintable()), None)
    if odd is not None:
        return Problem("model", f"model holds the character U+{ord(odd):04X}, which is not part of a name.")
    # Servers that take the name as a path would leave their folder of models.
    if ".." in model.split("/"):
        return Problem("model", "model holds the part .., which is not part of a name.")
    return None


def _provider_params_problem(params: Mapping[str, object]) -> Problem | None:
    problem = own_field_problem(params, OWN_FIELDS) or _secret_problem(params)
    if problem:
        return problem
    value = next((value for value in _values_in(params) if not _can_be_sent(value)), None)
    if value is None:
        return None
    what = "a NUL character" if isinstance(value, str) else f"the number {value}"
    return Problem("provider_params", f"provider_params holds {what}, which no server takes. Leave it out.")


def _secret_problem(params: Mapping[str, object]) -> Problem | None:
    """A parameter is kept with the run and shown to all."""
    word = secret_word_in(params)
    if word is None:
        return None
    advice = "A worker takes keys from its environment or a mounted file, never from an order. Leave it out."
    return Problem("provider_params", f"provider_params names a secret ({word}). {advice}")


def own_field_problem(params: Mapping[str, object], own_fields: Collection[str]) -> Problem | None:
    """However it is spelled: some servers take max_tokens and maxTokens alike."""
    own = {_as_one_word(name) for name in own_fields}
    found = next((name for name in sorted(params) if _as_one_word(name) in own), None)
    if found is None:
        return None
    advice = "Proctor sets it itself. Leave it out, or use the parameter of the order where there is one."
    return Problem("provider_params", f"provider_params has {found}, but {advice}")


def _as_one_word(name: str) -> str:
    return name.replace("_", "").casefold()


def _values_in(value: object) -> Iterator[object]:
    """Keys and values at any depth."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield key
            yield from _values_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _values_in(item)
    else:
        yield value


def _can_be_sent(value: object) -> bool:
    if isinstance(value, str):
        return "\0" not in value
    return not isinstance(value, float) or math.isfinite(value)
