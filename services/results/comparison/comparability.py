"""Whether runs can be compared, and warnings about what differs between them."""

from collections.abc import Iterator, Sequence

from proctor.values.run import RunState, unparsed_warning
from services.results.comparison.compared_metrics import ComparedMetrics, options_of, task_named
from services.results.comparison.comparison import ComparedRun
from services.results.comparison.errors import OtherBenchmark, OtherOptions, OtherScoring
from services.results.runs.errors import RunNotFrozen
from services.results.runs.run_plan import UNSPECIFIED, RunPlan, RunRecord


def check_comparable(records: Sequence[RunRecord], tasks: Sequence[str], *, is_forced: bool) -> None:
    """Raises RunNotFrozen, OtherBenchmark, and OtherScoring unless forced."""
    for record in records:
        if not record.is_frozen:
            raise RunNotFrozen(run_id=record.plan.run_id)
    first = records[0].plan
    for record in records[1:]:
        benchmarks = first.facts.benchmark, record.plan.facts.benchmark
        # The same rows may lie in several data sets; they are found by their digests.
        are_datasets = first.facts.is_of_dataset and record.plan.facts.is_of_dataset
        if benchmarks[0] != benchmarks[1] and not are_datasets:
            raise OtherBenchmark(difference="benchmark", first=benchmarks[0], second=benchmarks[1])
        ways = _ways(first, tasks), _ways(record.plan, tasks)
        if ways[0] != ways[1] and not is_forced:
            raise OtherScoring(difference="scoring_method", first=ways[0], second=ways[1])


def check_options(plans: Sequence[RunPlan], compared: ComparedMetrics) -> None:
    """Raises OtherOptions where a metric that is compared is another one in each run.

    Runs of a suite that differ in that are of other versions of it, which a warning reports.
    """
    if not plans[0].facts.is_of_dataset:
        return
    for task, metrics in compared.by_task.items():
        for scored in metrics:
            found = dict.fromkeys(options_of(plan, task, scored.metric.name) or "none" for plan in plans)
            if len(found) > 1:
                first, second, *_ = (f"{options:.200}" for options in found)
                raise OtherOptions(
                    difference="options", metric=scored.metric.name, first=first, second=second
                )


def warnings_of(records: Sequence[RunRecord], tasks: Sequence[str]) -> list[str]:
    """What else to know of the comparison beside the conditions that differ, a sentence each."""
    plans = [record.plan for record in records]
    return [
        *_state_warnings(records),
        *_differing(
            "Choices were scored in different ways, which was forced", [_ways(plan, tasks) for plan in plans]
        ),
        *_dataset_warnings(plans),
        *_missing_tasks(plans),
        *(warning for task in tasks for warning in _metric_warnings(task, plans)),
    ]


def stopped_warnings(runs: Sequence[ComparedRun]) -> list[str]:
    """A sentence where runs stopped early."""
    stopped = " and ".join(run.run_id for run in runs if run.is_stopped)
    sentence = (
        f"Until decided: {stopped}. P-values and intervals here take the number of samples for fixed, "
        "which it was not; the interval of the decision holds."
    )
    return [sentence] if stopped else []


def unparsed_warnings(runs: Sequence[ComparedRun], plans: Sequence[RunPlan]) -> list[str]:
    """A sentence for each run of which many answers could not be parsed."""
    found = (
        unparsed_warning(
            run.unparsed_rate,
            f"Run {run.run_id} of {run.model}",
            is_judging=plan.judged_run_id is not None,
        )
        for run, plan in zip(runs, plans, strict=True)
    )
    return [sentence for sentence in found if sentence]


def _dataset_warnings(plans: Sequence[RunPlan]) -> Iterator[str]:
    """Data sets are named with their ids; the rows of a data set are its one task."""
    facts = [plan.facts for plan in plans]
    if not facts[0].is_of_dataset or len({one.benchmark for one in facts}) == 1:
        return
    named = ", ".join(dict.fromkeys(f"{one.dataset_name} ({one.benchmark})" for one in facts))
    contents = {task.provenance.row_source_revision for plan in plans for task in plan.tasks}
    if len(contents) == 1:
        yield f"The runs are over uploads of the same content: {named}."
    else:
        yield f"The runs are over other data sets, and compared on the rows that all have: {named}."


def _state_warnings(records: Sequence[RunRecord]) -> Iterator[str]:
    for record in records:
        if record.state is not RunState.COMPLETED:
            yield f"Run {record.plan.run_id} ended as {record.state}; what it has is compared."


def _metric_warnings(name: str, plans: Sequence[RunPlan]) -> Iterator[str]:
    if not plans[0].facts.is_of_dataset:
        return
    shared = set.intersection(
        *({use.name for use in task_named(plan, name).scoring.metrics} for plan in plans)
    )
    for metric in sorted(shared):
        options = [options_of(plan, name, metric) or "none" for plan in plans]
        yield from _differing(f"{metric} was scored by other options, which was forced", options)


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
    return " and ".join(sorted({plan.scoring_method_of(index) or UNSPECIFIED for index in indexes}))
