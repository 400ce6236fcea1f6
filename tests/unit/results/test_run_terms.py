"""The terms of a run follow from its plan, and tell runs apart that cannot stand beside each other."""

from dataclasses import replace

import pytest

from services.results.runs.run_record import RunFacts, RunPlan, ScoringMethod, TaskProvenance
from services.results.standings.run_terms import RunTerms, terms_of
from tests.fakes.recorded_run import CHOICE_RECIPE, TEXT_RECIPE, plan_of

CHOICES = plan_of([3, 3])
TEXTS = replace(CHOICES, tasks=tuple(replace(task, scoring=TEXT_RECIPE) for task in CHOICES.tasks))
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
    assert terms_of(plan).scoring_method is method


def test_the_terms_are_those_of_the_order_and_of_its_rows() -> None:
    stand_in = replace(CHOICES.tasks[1], provenance=TaskProvenance(is_stand_in=True))
    facts = RunFacts(suite_version=3, limit=10, num_fewshot=0, missing_tasks=("t2",))
    plan = replace(CHOICES, tasks=(CHOICES.tasks[0], stand_in), is_truncated_left=True, facts=facts)
    assert terms_of(plan) == RunTerms(ScoringMethod.LOGLIKELIHOOD, 0, 3, 10, ("t2",), ("t1",), True)  # noqa: FBT003
    assert terms_of(CHOICES).is_whole
    assert CHOICES.tasks[0].scoring == CHOICE_RECIPE


def test_other_terms_have_another_text() -> None:
    terms = RunTerms(ScoringMethod.LOGLIKELIHOOD)
    others = [
        replace(terms, scoring_method=ScoringMethod.CONSTRAINED),
        replace(terms, num_fewshot=0),
        replace(terms, num_fewshot=1),
        replace(terms, suite_version=1),
        replace(terms, limit=1),
        replace(terms, missing_tasks=("a",)),
        replace(terms, stand_in_tasks=("a",)),
        replace(terms, is_truncated_left=True),
    ]
    assert len({one.text for one in (terms, *others)}) == 9
    assert [one.is_whole for one in others] == [True] * 4 + [False] * 4
