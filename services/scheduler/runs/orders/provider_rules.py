"""What each provider takes of an order: refused when it is submitted, and not sample by sample in mid-run.

The worker's adapters refuse the same (`services/worker/engines/unsupported.py`); a contract test says so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from types import MappingProxyType

from services.scheduler import errors
from services.scheduler.requests import Problem, Range
from services.scheduler.runs.orders.errors import BaseUrlNotAllowed, CannotAskElsewhere
from services.scheduler.runs.orders.order_rules import own_field_problem
from services.scheduler.runs.orders.run_order import MAX_ROLLOUTS, GenerationParams, RunOrder, params_for
from services.scheduler.suites.suite import TaskDefinition
from services.scheduler.workers.base_urls import NoBaseUrl, host_of, is_allowed, parse_base_url
from services.scheduler.workers.pool import Pool


@dataclass(frozen=True, slots=True)
class ProviderRules:
    """`name` as people write it. `extra` None: any parameter of its own but those that Proctor sets itself.

    Where the provider takes no temperature its own is the `only_temperature`, and an order may say no other.
    """

    name: str
    unknown: frozenset[str] = frozenset()
    ranges: tuple[Range, ...] = ()
    only_temperature: float | None = None
    set_by_proctor: frozenset[str] = frozenset()
    extra: Mapping[str, Range | None] | None = None

    @property
    def temperatures(self) -> frozenset[float]:
        """Those of tasks that run; empty for any. That one of 0 is not kept to stands with the run."""
        return frozenset() if self.only_temperature is None else frozenset({0.0, self.only_temperature})


# Of vLLM's own parameters those that a run may set; with a range where it is a number.
_VLLM_EXTRA: Mapping[str, Range | None] = MappingProxyType(
    {
        "min_p": Range("min_p", 0, 1),
        "presence_penalty": Range("presence_penalty", -2, 2),
        "frequency_penalty": Range("frequency_penalty", -2, 2),
        "min_tokens": Range("min_tokens", 0),
        "ignore_eos": None,
        "stop_token_ids": None,
        "bad_words": None,
    }
)
# A seed is a number of 32 bits there, and rollout n uses seed + n.
_GEMINI_SEED = Range("seed", 0, 2**31 - MAX_ROLLOUTS)
_GEMINI_OWN = frozenset(
    {
        "maxOutputTokens",
        "stopSequences",
        "candidateCount",
        "contents",
        "systemInstruction",
        "generationConfig",
    }
)
_ANTHROPIC_UNKNOWN = frozenset({"top_p", "top_k", "seed", "repetition_penalty", "context_tokens"})
RULES_OF: Mapping[str, ProviderRules] = MappingProxyType(
    {
        "vllm": ProviderRules("The vLLM engine", frozenset({"context_tokens"}), extra=_VLLM_EXTRA),
        "ollama": ProviderRules(
            "Ollama", set_by_proctor=frozenset({"num_predict", "num_ctx", "repeat_penalty"})
        ),
        "gemini": ProviderRules(
            "Gemini",
            frozenset({"repetition_penalty", "context_tokens"}),
            (Range("top_k", 1), _GEMINI_SEED),
            set_by_proctor=_GEMINI_OWN,
        ),
        "anthropic": ProviderRules(
            "Anthropic",
            _ANTHROPIC_UNKNOWN,
            only_temperature=1.0,
            set_by_proctor=frozenset({"stop_sequences", "system"}),
        ),
        "openai": ProviderRules("A server behind the OpenAI protocol", frozenset({"context_tokens"})),
    }
)
# Many servers behind the OpenAI protocol take more than these two document.
_STRICT = frozenset({"top_k", "repetition_penalty", "context_tokens"})
RULES_OF_HOST: Mapping[str, ProviderRules] = MappingProxyType(
    {"api.openai.com": ProviderRules("OpenAI", _STRICT), "api.x.ai": ProviderRules("xAI", _STRICT)}
)
# By these names Ollama's users know them.
_ALSO_CALLED = {"context_tokens": " (num_ctx)", "repetition_penalty": " (repeat_penalty)"}


def refuse_unfit(order: RunOrder, tasks: Sequence[TaskDefinition], pool: Pool) -> None:
    """Raises the refusal of what the pool's provider would refuse for every sample."""
    if order.base_url:
        _refuse_base_url(order.base_url, pool)
    rules = rules_of(pool, order.base_url)
    problem = _problem_of_order(rules, order.params) or _problem_of_tasks(rules, order, tasks)
    if problem:
        raise errors.InvalidParameter(field=f"order.{problem.field}", sentence=problem.sentence)


def rules_of(pool: Pool, base_url: str = "") -> ProviderRules:
    of_engine = RULES_OF[pool.engine]
    return (
        RULES_OF_HOST.get(host_of(base_url or pool.base_url), of_engine)
        if pool.engine == "openai"
        else of_engine
    )


def _refuse_base_url(base_url: str, pool: Pool) -> None:
    try:
        parsed = parse_base_url(base_url)
    except NoBaseUrl as error:
        raise errors.InvalidParameter(field="order.base_url", sentence=f"base_url {error}.") from error
    if pool.engine != "openai":
        raise CannotAskElsewhere(pool=pool.name, engine=pool.engine)
    if not is_allowed(parsed, pool.may_ask):
        raise BaseUrlNotAllowed(base_url=base_url)


def _problem_of_order(rules: ProviderRules, params: GenerationParams) -> Problem | None:
    """A temperature that was ordered is kept to, other than one of a task."""
    if rules.only_temperature is not None and params.temperature not in (None, rules.only_temperature):
        return _not_taken(rules, "temperature")
    return _problem(rules, params)


def _problem(rules: ProviderRules, params: GenerationParams) -> Problem | None:
    given = {
        each.name: getattr(params, each.name) for each in fields(params) if each.name != "provider_params"
    }
    set_ = {name: value for name, value in given.items() if value is not None}
    unknown = next((name for name in set_ if name in rules.unknown), None)
    if unknown is None and rules.temperatures and set_.get("temperature", 0.0) not in rules.temperatures:
        unknown = "temperature"
    if unknown:
        return _not_taken(rules, unknown)
    problem = next((found for each in rules.ranges if (found := each.problem(set_.get(each.field)))), None)
    if problem:
        return Problem(problem.field, f"{rules.name} refuses this: {problem.sentence}")
    return _extra_problem(rules, params.provider_params)


def _not_taken(rules: ProviderRules, name: str) -> Problem:
    called = f"{name}{_ALSO_CALLED.get(name, '')}"
    return Problem(name, f"{rules.name} takes no {called}; leave it out of the run's parameters.")


def _extra_problem(rules: ProviderRules, given: Mapping[str, object]) -> Problem | None:
    if rules.extra is None:
        return own_field_problem(given, rules.set_by_proctor)
    for name, value in given.items():
        if name not in rules.extra:
            known = ", ".join(sorted(rules.extra))
            sentence = f"{rules.name} does not know the parameter {name}. Of its own it takes {known}."
            return Problem("provider_params", sentence)
        range_ = rules.extra[name]
        if range_ is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float):
            return Problem("provider_params", f"{name} must be a number.")
        if problem := range_.problem(value):
            return problem
    return None


def _problem_of_tasks(
    rules: ProviderRules, order: RunOrder, tasks: Sequence[TaskDefinition]
) -> Problem | None:
    """What a task's file sets where the order says nothing."""
    for task in tasks:
        problem = _problem(rules, params_for(order.params, task.generation))
        if problem:
            advice = "Leave the task out, or examine it with another provider."
            sentence = f"Task {task.name} sets {problem.field}, which {rules.name} does not take so. {advice}"
            return Problem("tasks", sentence)
    return None
