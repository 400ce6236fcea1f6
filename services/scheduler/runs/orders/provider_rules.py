"""Checks an order against the rules of its provider, when it is submitted and not sample by sample."""

from collections.abc import Mapping, Sequence
from dataclasses import fields

from proctor.values.generation import GenerationParams, Problem
from proctor.values.providers.base_urls import BaseUrl, host_of, is_allowed, parse_base_url
from proctor.values.providers.errors import NoBaseUrl
from proctor.values.providers.pool import Pool
from proctor.values.providers.rules import ProviderRules, rules_for
from services.common.checked_fields import refuse
from services.common.errors import InvalidParameter
from services.scheduler.runs.orders.errors import BaseUrlNotAllowed, CannotAskElsewhere
from services.scheduler.runs.orders.order_rules import own_field_problem
from services.scheduler.runs.orders.run_order import RunOrder, params_for
from services.scheduler.suites.suite import TaskDefinition

# By these names Ollama's users know them.
_ALSO_CALLED = {"context_tokens": " (num_ctx)", "repetition_penalty": " (repeat_penalty)"}


def refuse_unfit(
    order: RunOrder, tasks: Sequence[TaskDefinition], pool: Pool, allowed: Sequence[BaseUrl] = ()
) -> None:
    """Raises the refusal of what the pool's provider would refuse for every sample."""
    if order.base_url:
        _refuse_base_url(order.base_url, pool, allowed)
    rules = rules_of(pool, order.base_url)
    refuse(_problem_of_order(rules, order.params) or _problem_of_tasks(rules, order, tasks), of="order")


def rules_of(pool: Pool, base_url: str = "") -> ProviderRules:
    return rules_for(pool.engine, host_of(base_url or pool.base_url))


def _refuse_base_url(base_url: str, pool: Pool, allowed: Sequence[BaseUrl]) -> None:
    try:
        parsed = parse_base_url(base_url)
    except NoBaseUrl as error:
        raise InvalidParameter(field="order.base_url", sentence=f"base_url {error}.") from error
    if pool.engine != "openai":
        raise CannotAskElsewhere(pool=pool.name, engine=pool.engine)
    if not is_allowed(parsed, allowed):
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
    """Checks parameters of tasks that the order leaves unset."""
    for task in tasks:
        problem = _problem(rules, params_for(order.params, task.generation))
        if problem:
            advice = "Leave the task out, or evaluate it with another provider."
            sentence = f"Task {task.name} sets {problem.field}, which {rules.name} does not take so. {advice}"
            return Problem("tasks", sentence)
    return None
