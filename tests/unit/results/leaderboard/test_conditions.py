"""The conditions of a run follow from its plan and its engines, and keep apart runs that differ in any."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from proctor.values.scoring import MetricUse, ScoringMethod
from services.results.leaderboard.closed_run import BenchmarkResult
from services.results.leaderboard.conditions import EvaluationConditions, conditions_of
from services.results.leaderboard.postgres import RESULT
from services.results.leaderboard.rank_models import LeaderboardQuery
from services.results.runs.conditions import (
    CONDITIONS,
    Condition,
    DifferingCondition,
    EvaluatedRun,
    differing_conditions,
)
from services.results.runs.run_plan import RunFacts, RunPlan
from tests.fakes.results.closed_runs import BENCHMARK, ClosedRuns
from tests.fakes.results.recorded_run import CHOICE_SCORING, TEXT_SCORING, plan_of

CHOICES = plan_of([3, 3])
TEXTS = replace(CHOICES, tasks=tuple(replace(task, scoring=TEXT_SCORING) for task in CHOICES.tasks))
MIXED = replace(CHOICES, tasks=(TEXTS.tasks[0], CHOICES.tasks[1]))
USUAL = EvaluatedRun(CHOICES)
EXACT = MetricUse("exact_match")
QUERY = LeaderboardQuery(BENCHMARK, metric="score")
LETTERS, DIGITS = (MetricUse("regex", json.dumps({"pattern": one})) for one in ("[a-z]", "[0-9]"))


def conditions(plan: RunPlan) -> EvaluationConditions:
    return conditions_of(EvaluatedRun(plan))


def dataset_plan(*metrics: MetricUse) -> RunPlan:
    scoring = replace(TEXT_SCORING, metrics=metrics)
    tasks = (replace(CHOICES.tasks[0], scoring=scoring),)
    return replace(CHOICES, tasks=tasks, facts=RunFacts("ds_1", dataset_name="rows.jsonl"))


def of_facts(**facts: object) -> EvaluatedRun:
    return EvaluatedRun(replace(CHOICES, facts=replace(CHOICES.facts, **facts)))  # type: ignore[arg-type]  # named by the tests


def of_provenance(**fields: object) -> EvaluatedRun:
    tasks = tuple(
        replace(task, provenance=replace(task.provenance, **fields))  # type: ignore[arg-type]  # named by the tests
        for task in CHOICES.tasks
    )
    return EvaluatedRun(replace(CHOICES, tasks=tasks))


def of_scoring(**fields: object) -> EvaluatedRun:
    scoring = replace(CHOICE_SCORING, **fields)  # type: ignore[arg-type]  # named by the tests
    return EvaluatedRun(
        replace(CHOICES, tasks=tuple(replace(task, scoring=scoring) for task in CHOICES.tasks))
    )


def requesting(name: str, value: object) -> EvaluatedRun:
    return of_provenance(request_json=json.dumps({name: value}))


# Condition to two runs that differ in it and in nothing else, and to the phrase.
DIFFERENT: Mapping[str, tuple[EvaluatedRun, EvaluatedRun, str]] = {
    "imported from": (USUAL, of_provenance(logged_by="lm-eval"), "imported from lm-eval instead of none"),
    "suite version": (of_facts(suite_version=2), of_facts(suite_version=1), "suite version 1 instead of 2"),
    "definition": (
        of_provenance(definition_digest="a" * 64),
        of_provenance(definition_digest="b" * 64),
        f"definition {'b' * 12} instead of {'a' * 12}",
    ),
    "scoring rules": (USUAL, of_scoring(filters_json="[]"), "scoring rules "),
    "metric": (
        EvaluatedRun(dataset_plan(EXACT)),
        EvaluatedRun(dataset_plan(LETTERS)),
        'metric regex {"pattern": "[a-z]"} instead of exact_match',
    ),
    "scoring method": (
        USUAL,
        EvaluatedRun(replace(CHOICES, scoring_method=ScoringMethod.GENERATE)),
        "scoring method generate instead of loglikelihood",
    ),
    "choice instruction": (
        USUAL,
        requesting("choice_instruction", "2"),
        "choice instruction 2 instead of none",
    ),
    "shots": (USUAL, of_provenance(num_fewshot=5), "shots 5 instead of 0"),
    "limit": (USUAL, of_facts(limit=40), "limit 40 instead of none"),
    "rows and prompts": (
        of_provenance(samples_digest="1" * 64),
        of_provenance(samples_digest="2" * 64),
        f"rows and prompts {'2' * 12} instead of {'1' * 12}",
    ),
    "missing tasks": (USUAL, of_facts(missing_tasks=("t2", "t3")), "missing tasks t2, t3 instead of none"),
    "stand-in rows": (USUAL, of_provenance(is_stand_in=True), "stand-in rows t0, t1 instead of none"),
    "prompt form": (
        requesting("prompt_form", "completion"),
        requesting("prompt_form", "chat"),
        "prompt form chat instead of completion",
    ),
    "truncation": (
        USUAL,
        EvaluatedRun(replace(CHOICES, is_truncated_left=True)),
        "truncation left instead of none",
    ),
    "reasoning": (USUAL, of_scoring(keeps_reasoning=True), "reasoning keep instead of separate"),
    "rows left out": (
        USUAL,
        EvaluatedRun(replace(CHOICES, row_rollouts=(0, 1, 1, 0, 1, 1))),
        "rows left out 2 instead of none",
    ),
    "rollouts": (USUAL, EvaluatedRun(replace(CHOICES, rollouts=4)), "rollouts 4 instead of 1"),
    "temperature": (
        requesting("temperature", 0.0),
        requesting("temperature", 1.0),
        "temperature 1.0 instead of 0",
    ),
    "top_p": (USUAL, requesting("top_p", 0.9), "top_p 0.9 instead of none"),
    "top_k": (USUAL, requesting("top_k", 5), "top_k 5 instead of none"),
    "max_tokens": (
        requesting("max_tokens", 256),
        requesting("max_tokens", 32),
        "max_tokens 32 instead of 256",
    ),
    "stop": (
        requesting("stop", ["\n\n"]),
        requesting("stop", ["\n"]),
        'stop ["\\n"] instead of ["\\n\\n"]',
    ),
    "seed": (USUAL, requesting("seed", 0), "seed 0 instead of none"),
    "repetition_penalty": (
        USUAL,
        requesting("repetition_penalty", 1.1),
        "repetition_penalty 1.1 instead of none",
    ),
    "context_tokens": (USUAL, requesting("context_tokens", 4096), "context_tokens 4096 instead of none"),
    "provider_params": (
        USUAL,
        requesting("provider_params", {"min_p": 0.1}),
        'provider_params {"min_p": 0.1} instead of none',
    ),
    "agent": (
        requesting("agent", "shell, 50 steps, 500000 tokens"),
        requesting("agent", "codex, 50 steps, 500000 tokens"),
        "agent codex, 50 steps, 500000 tokens instead of shell, 50 steps, 500000 tokens",
    ),
    "chat template": (USUAL, EvaluatedRun(CHOICES, {"chat_template": "1a2b"}), ""),
    "reasoning parser": (USUAL, EvaluatedRun(CHOICES, {"reasoning_parser": "qwen3"}), ""),
    "quantization": (USUAL, EvaluatedRun(CHOICES, {"quantization": "fp8"}), ""),
}


def test_every_condition_has_two_runs_that_differ_in_it() -> None:
    assert list(DIFFERENT) == [condition.name for condition in CONDITIONS]


@pytest.mark.parametrize("condition", CONDITIONS, ids=lambda one: one.name)
async def test_a_difference_in_any_condition_keeps_two_runs_apart(condition: Condition) -> None:
    ranked, other, phrase = DIFFERENT[condition.name]
    runs = ClosedRuns()
    first = runs.add("p/c", 0.9, conditions_of(other))
    # Two of these: conditions of most models are ranked.
    runs.add("p/a", 0.5, conditions_of(ranked))
    runs.add("p/b", 0.5, conditions_of(ranked))
    leaderboard = await runs.rank_models.rank(QUERY)
    if condition.is_of_model:
        # Each model has its own: it tells only runs of one model apart.
        assert [entry.model for entry in leaderboard.entries] == ["p/c", "p/a", "p/b"]
        runs.add("p/c", 0.1, conditions_of(ranked))
        entries = (await runs.rank_models.rank(QUERY)).entries
        assert {entry.model: entry.trend for entry in entries} == {"p/a": None, "p/b": None, "p/c": None}
        return
    assert [entry.model for entry in leaderboard.entries] == ["p/a", "p/b"]
    [unranked] = leaderboard.unranked
    [reason] = unranked.unranked_because
    assert reason.startswith(phrase)
    asked = await runs.rank_models.rank(replace(QUERY, like_run_id=first.run_id))
    assert [entry.model for entry in asked.entries] == ["p/c"]


@pytest.mark.parametrize("condition", CONDITIONS, ids=lambda one: one.name)
def test_a_comparison_lists_a_difference_in_any_condition(condition: Condition) -> None:
    first, second, _ = DIFFERENT[condition.name]
    [differing] = differing_conditions([first, second], [task.task for task in first.plan.tasks])
    assert differing.name == condition.name
    assert len(set(differing.values)) == 2
    assert differing.tasks == ()
    assert differing_conditions([second, second], ["t0"]) == []


@pytest.mark.parametrize("condition", CONDITIONS, ids=lambda one: one.name)
async def test_runs_under_equal_conditions_are_ranked_together(condition: Condition) -> None:
    for run in DIFFERENT[condition.name][:2]:
        runs = ClosedRuns()
        first = runs.add("p/a", 0.5, conditions_of(run))
        runs.add("p/b", 0.6, conditions_of(replace(run, plan=replace(run.plan, run_id="other"))))
        asked = await runs.rank_models.rank(replace(QUERY, like_run_id=first.run_id))
        assert [entry.model for entry in asked.entries] == ["p/b", "p/a"]


def test_a_difference_in_some_tasks_names_them() -> None:
    first, second = CHOICES.tasks
    five = replace(second, provenance=replace(second.provenance, num_fewshot=5))
    changed = EvaluatedRun(replace(CHOICES, tasks=(first, five)))
    assert differing_conditions([USUAL, changed, USUAL], ["t0", "t1"]) == [
        DifferingCondition("shots", ("0", "5", "0"), ("t1",))
    ]
    assert differing_conditions([USUAL, changed], ["t0"]) == []
    assert conditions_of(changed).value("shots") == "0 (t0); 5 (t1)"
    other = replace(five, provenance=replace(five.provenance, num_fewshot=4))
    assert conditions(replace(CHOICES, tasks=(first, other))).differences(conditions_of(USUAL)) == (
        "shots 0 (t0); 4 (t1) instead of 0",
    )


def test_what_follows_from_another_difference_is_not_a_reason_of_its_own() -> None:
    limited = of_provenance(samples_digest="2" * 64)
    limited = replace(limited, plan=replace(limited.plan, facts=RunFacts(limit=40)))
    assert conditions_of(limited).differences(conditions_of(USUAL)) == ("limit 40 instead of none",)
    assert conditions_of(limited).key != conditions_of(USUAL).key


@pytest.mark.parametrize(
    ("plan", "method"),
    [
        (CHOICES, ScoringMethod.LOGLIKELIHOOD),
        (TEXTS, ScoringMethod.GENERATE),
        (MIXED, ScoringMethod.LOGLIKELIHOOD),
    ],
)
def test_where_nothing_is_chosen_from_a_run_is_generated_whatever_it_settled_on(
    plan: RunPlan, method: ScoringMethod
) -> None:
    assert conditions(plan).scoring_method is method


def test_a_run_over_a_data_set_says_how_each_figure_was_scored_and_a_suite_does_not() -> None:
    letters, digits = (conditions(dataset_plan(use, EXACT)) for use in (LETTERS, DIGITS))
    exact_first = conditions(dataset_plan(EXACT, LETTERS))

    def key(of: EvaluationConditions, metric: str) -> str:
        return of.of_metric(metric).key

    assert key(letters, "exact_match") == key(digits, "exact_match")
    assert key(letters, "regex") != key(digits, "regex")
    assert key(letters, "score") == key(letters, "regex") == key(exact_first, "regex")
    assert key(letters, "score") != key(exact_first, "score")
    assert key(letters, "pass@2") == key(letters, "regex")
    assert letters.of_metric("regex").differences(digits.of_metric("regex")) == (
        'metric regex {"pattern": "[a-z]"} instead of regex {"pattern": "[0-9]"}',
    )
    assert conditions(TEXTS).of_metric("exact_match") == conditions(TEXTS)


def test_pass_at_k_is_that_of_the_first_metric_that_is_right_or_wrong() -> None:
    terms = conditions(dataset_plan(MetricUse("squad_f1"), EXACT))
    assert terms.of_metric("pass@2") == terms.of_metric("exact_match")


def long_options(last: str) -> EvaluatedRun:
    return EvaluatedRun(dataset_plan(MetricUse("choice", json.dumps({"choices": ["x" * 5000, last]}))))


def long_stop(last: str) -> EvaluatedRun:
    return requesting("stop", ["x" * 5000, last])


@pytest.mark.parametrize(("run_of", "name"), [(long_options, "metric"), (long_stop, "stop")])
def test_long_values_are_distinguished_in_a_few_letters(
    run_of: Callable[[str], EvaluatedRun], name: str
) -> None:
    texts = {conditions_of(run_of(last)).value(name) for last in "ab"}
    assert len(texts) == 2
    assert max(map(len, texts)) < 400


def test_conditions_come_back_from_where_they_are_kept() -> None:
    entry = BenchmarkResult(conditions(dataset_plan(LETTERS, EXACT)), dataset_name="rows.jsonl")
    assert RESULT.validate_json(RESULT.dump_json(entry)) == entry
