"""Whether runs can be compared, and what a reader must know who compares them all the same."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from services.results.errors import OtherScoring, OtherSuite, RunNotFinished
from services.results.runs.run_record import FinalState, PlannedTask, RunPlan, RunRecord


def check_comparable(records: Sequence[RunRecord], tasks: Sequence[str], *, is_forced: bool) -> None:
    """Raises RunNotFinished, OtherSuite, and OtherScoring unless forced."""
    for record in records:
        if not record.is_frozen:
            raise RunNotFinished(run_id=record.plan.run_id)
    first = records[0].plan
    for record in records[1:]:
        suites = first.facts.suite, record.plan.facts.suite
        if suites[0] != suites[1]:
            raise OtherSuite(difference="suite", first=suites[0], second=suites[1])
        ways = _ways(first, tasks), _ways(record.plan, tasks)
        if ways[0] != ways[1] and not is_forced:
            raise OtherScoring(difference="scoring_method", first=ways[0], second=ways[1])


def warnings_of(records: Sequence[RunRecord], tasks: Sequence[str]) -> list[str]:
    """What differs between the runs besides their models, one sentence each."""
    plans = [record.plan for record in records]
    found = [
        *_state_warnings(records),
        *_differing(
            "Choices were scored in different ways, which was forced", [_ways(plan, tasks) for plan in plans]
        ),
        *_differing("The runs were limited to other rows", [_limit(plan) for plan in plans]),
        *_differing(
            "The runs had other versions of the suite", [str(plan.facts.suite_version) for plan in plans]
        ),
        *_differing(
            "Samples were repeated a different number of times", [str(plan.rollouts) for plan in plans]
        ),
        *_differing("Prompts that are too long were treated in other ways", [_cut(plan) for plan in plans]),
        *_missing_tasks(plans),
    ]
    for task in tasks:
        found += _task_warnings(task, [_task(plan, task) for plan in plans])
    return found


def _state_warnings(records: Sequence[RunRecord]) -> Iterator[str]:
    for record in records:
        if record.state is not FinalState.COMPLETED:
            yield f"Run {record.plan.run_id} ended as {record.state.name.lower()}; what it has is compared."


def _task_warnings(name: str, tasks: Sequence[PlannedTask]) -> Iterator[str]:
    origins = [task.provenance for task in tasks]
    yield from _differing(f"{name}: other versions of the task", [origin.version for origin in origins])
    yield from _differing(
        f"{name}: other numbers of examples", [str(origin.num_fewshot) for origin in origins]
    )
    yield from _differing(f"{name}: other rows", [f"{one.dataset} {one.dataset_revision}" for one in origins])
    if any(one.scoring != other.scoring for one, other in pairwise(tasks)):
        yield f"{name}: scored by other rules."


def _missing_tasks(plans: Sequence[RunPlan]) -> Iterator[str]:
    names = [{task.task for task in plan.tasks} for plan in plans]
    partial = sorted({task for one in names for task in one if not all(task in other for other in names)})
    if partial:
        yield f"Not every run has these tasks, which are left out: {', '.join(partial)}."


def _differing(what: str, values: Sequence[str]) -> Iterator[str]:
    if len(set(values)) > 1:
        yield f"{what}: {', '.join(values)}."


def _ways(plan: RunPlan, tasks: Sequence[str]) -> str:
    """How the tasks were scored, as words."""
    indexes = [index for index, task in enumerate(plan.tasks) if task.task in tasks]
    return " and ".join(sorted({plan.scoring_method_of(index).name.lower() for index in indexes}))


def _limit(plan: RunPlan) -> str:
    return "all rows" if plan.facts.limit is None else f"the first {plan.facts.limit}"


def _cut(plan: RunPlan) -> str:
    return "cut from the left" if plan.is_truncated_left else "failed"


def _task(plan: RunPlan, name: str) -> PlannedTask:
    return next(task for task in plan.tasks if task.task == name)
