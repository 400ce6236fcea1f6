"""Readers of logs name evaluation conditions that results knows."""

from proctor.values.scoring import OutputType, TaskScoring
from services.results.runs.conditions import (
    CONDITIONS,
    UNKNOWN,
    EvaluatedRun,
    differing_conditions,
    values_of,
)
from services.results.runs.run_plan import PlannedTask, RunPlan, TaskProvenance
from services.scheduler.imports.logs import unknown_conditions as unknown

NAMES = {condition.name for condition in CONDITIONS}


def test_every_condition_that_a_log_does_not_tell_is_one() -> None:
    assert {*unknown.NEVER_KNOWN, *unknown.OF_GENERATION} <= NAMES
    assert {unknown.SHOTS, unknown.LIMIT, unknown.PROMPT_FORM, unknown.AGENT} <= NAMES
    assert set(unknown.unknown_conditions({}, is_generated=True)) <= NAMES
    assert "temperature" not in unknown.unknown_conditions({"temperature": 0}, is_generated=True)


def imported(run_id: str) -> EvaluatedRun:
    provenance = TaskProvenance(logged_by="lm-eval", unknown_conditions=("seed",))
    scoring = TaskScoring(OutputType.GENERATE_UNTIL, (), is_logged=True)
    return EvaluatedRun(RunPlan(run_id, (PlannedTask("qa", "", 0, 1, scoring, provenance),)))


def test_unknown_is_equal_to_nothing_not_even_to_itself() -> None:
    run = imported("first")
    assert (values_of(run)["seed"], values_of(run)["imported from"]) == (UNKNOWN, "lm-eval")
    [differing] = differing_conditions([run, imported("second")], ["qa"])
    assert (differing.name, differing.values) == ("seed", (UNKNOWN, UNKNOWN))
