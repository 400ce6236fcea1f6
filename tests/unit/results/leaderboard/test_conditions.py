"""The terms of a run follow from its plan, and tell runs apart that cannot stand beside each other."""

import json
from dataclasses import replace

import pytest

from proctor.values.scoring import MetricUse, ScoringMethod
from services.results.leaderboard.closed_run import BenchmarkResult
from services.results.leaderboard.conditions import EvaluationConditions, conditions_of
from services.results.leaderboard.postgres import (
    RESULT,
)
from services.results.runs.run_plan import RunFacts, RunPlan, TaskProvenance
from tests.fakes.results.recorded_run import CHOICE_SCORING, TEXT_SCORING, plan_of

CHOICES = plan_of([3, 3])
TEXTS = replace(CHOICES, tasks=tuple(replace(task, scoring=TEXT_SCORING) for task in CHOICES.tasks))
MIXED = replace(CHOICES, tasks=(TEXTS.tasks[0], CHOICES.tasks[1]))


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
    assert conditions_of(plan).scoring_method is method


def test_the_terms_are_those_of_the_order_and_of_its_rows() -> None:
    stand_in = replace(CHOICES.tasks[1], provenance=TaskProvenance(is_stand_in=True))
    facts = RunFacts(suite_version=3, limit=10, num_fewshot=0, missing_tasks=("t2",))
    plan = replace(CHOICES, tasks=(CHOICES.tasks[0], stand_in), is_truncated_left=True, facts=facts)
    assert conditions_of(plan) == EvaluationConditions(
        ScoringMethod.LOGLIKELIHOOD, 0, 3, 10, ("t2",), ("t1",), is_truncated_left=True
    )
    assert conditions_of(CHOICES).is_whole
    assert CHOICES.tasks[0].scoring == CHOICE_SCORING


def test_other_terms_have_another_text() -> None:
    terms = EvaluationConditions(ScoringMethod.LOGLIKELIHOOD)
    others = [
        replace(terms, scoring_method=ScoringMethod.CONSTRAINED),
        replace(terms, num_fewshot=0),
        replace(terms, num_fewshot=1),
        replace(terms, suite_version=1),
        replace(terms, keeps_reasoning=True),
        replace(terms, limit=1),
        replace(terms, missing_tasks=("a",)),
        replace(terms, stand_in_tasks=("a",)),
        replace(terms, is_truncated_left=True),
    ]
    assert len({one.text for one in (terms, *others)}) == 10
    assert [one.is_whole for one in others] == [True] * 5 + [False] * 4


def test_a_run_that_keeps_reasoning_is_not_ranked_with_one_that_leaves_it_out() -> None:
    scoring = replace(TEXT_SCORING, keeps_reasoning=True)
    plan = replace(CHOICES, tasks=(replace(CHOICES.tasks[0], scoring=scoring),))
    kept, separate = conditions_of(plan), replace(conditions_of(plan), keeps_reasoning=False)
    assert kept.keeps_reasoning
    assert not conditions_of(CHOICES).keeps_reasoning
    assert kept.differences(separate) == ("reasoning scored with the answer",)
    assert separate.differences(kept) == ("reasoning left out",)


def dataset_plan(*metrics: MetricUse) -> RunPlan:
    scoring = replace(TEXT_SCORING, metrics=metrics)
    tasks = (replace(CHOICES.tasks[0], scoring=scoring),)
    return replace(CHOICES, tasks=tasks, facts=RunFacts("ds_1", dataset_name="rows.jsonl"))


LETTERS, DIGITS = (MetricUse("regex", json.dumps({"pattern": one})) for one in ("[a-z]", "[0-9]"))
EXACT = MetricUse("exact_match")


def test_a_run_over_a_data_set_says_how_each_figure_was_scored_and_a_suite_does_not() -> None:
    letters, digits = (conditions_of(dataset_plan(use, EXACT)) for use in (LETTERS, DIGITS))
    exact_first = conditions_of(dataset_plan(EXACT, LETTERS))
    assert letters.of_metric("exact_match") == digits.of_metric("exact_match")
    assert letters.of_metric("regex") != digits.of_metric("regex")
    assert letters.of_metric("score") == letters.of_metric("regex") == exact_first.of_metric("regex")
    assert letters.of_metric("score") != exact_first.of_metric("score")
    assert letters.of_metric("pass@2") == letters.of_metric("regex")
    assert letters.of_metric("regex").differences(digits.of_metric("regex")) == (
        'scored by regex {"pattern": "[a-z]"}',
    )
    assert letters.is_whole
    assert conditions_of(TEXTS).of_metric("exact_match") == conditions_of(TEXTS)


def test_pass_at_k_is_that_of_the_first_metric_that_is_right_or_wrong() -> None:
    terms = conditions_of(dataset_plan(MetricUse("squad_f1"), EXACT))
    assert terms.of_metric("pass@2") == terms.of_metric("exact_match")


def test_long_options_are_distinguished_in_a_few_letters() -> None:
    uses = [MetricUse("choice", json.dumps({"choices": ["x" * 5000, last]})) for last in "ab"]
    texts = {conditions_of(dataset_plan(use)).text for use in uses}
    assert len(texts) == 2
    assert max(map(len, texts)) < 400


def test_conditions_come_back_from_where_they_are_kept() -> None:
    entry = BenchmarkResult(conditions_of(dataset_plan(LETTERS, EXACT)), dataset_name="rows.jsonl")
    assert RESULT.validate_json(RESULT.dump_json(entry)) == entry
