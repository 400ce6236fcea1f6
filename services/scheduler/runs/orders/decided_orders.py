"""Orders of two runs until decided: how they are completed, and which cannot be decided sample by sample."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from uuid import UUID, uuid5

from proctor.values.comparison import DEFAULT_DECISION_ALPHA, MAX_MARGIN_POINTS, UntilDecided
from proctor.values.generation import Problem, Range
from proctor.values.metrics.catalogue import METRICS
from proctor.values.run import RunId
from services.common.checked_fields import refuse
from services.common.errors import InvalidParameter
from services.scheduler.runs.orders.run_order import RunOrder
from services.scheduler.suites.suite import TaskDefinition

_FIELD = "until_decided"
_MAX_ALPHA = 0.5
# Seeds are whole numbers that JSON keeps.
_SEEDS = 2**31


def same_runs_for(request_id: str, user: str) -> RunId:
    """The id of the first run, so that a repeated call orders the same two runs."""
    return RunId(str(uuid5(UUID(request_id), f"{user}, until decided")))


def accepted(order: RunOrder, wanted: UntilDecided, run_id: RunId) -> RunOrder:
    """The order of the first run, with the id of the second one and the order of samples."""
    return replace(
        order,
        until_decided=replace(
            wanted,
            alpha=DEFAULT_DECISION_ALPHA if wanted.alpha is None else wanted.alpha,
            against_run_id=str(uuid5(UUID(run_id), "base")),
            seed=UUID(run_id).int % _SEEDS,
        ),
    )


def order_of_base(order: RunOrder, accepted_order: RunOrder, run_id: RunId) -> tuple[RunId, RunOrder]:
    """The second run and its order: as the order was given. `run_id` is that of the first."""
    wanted = accepted_order.until_decided
    assert wanted is not None
    other = replace(wanted, against_model=accepted_order.model, against_run_id=run_id, is_base=True)
    return RunId(wanted.against_run_id), replace(order, model=wanted.against_model, until_decided=other)


def refuse_undecidable(order: RunOrder, wanted: UntilDecided, tasks: Sequence[TaskDefinition]) -> None:
    """Raises `InvalidParameter`. Models are named in full."""
    refuse(next(_problems(order, wanted), None), of="order")
    mains = {task.name: [use.name for use in task.scoring.metrics][:1] for task in tasks}
    if order.dataset_id:
        mains = {"the data set": [use.name for use in order.metrics][:1]}
    for task in tasks:
        if task.templates.cluster or task.rollout_column:
            what = "has samples that share a passage" if task.templates.cluster else "is of rollouts"
            raise _refusal(f"Task {task.name} {what}: no test can look at its pairs again and again")
    for name, metrics in mains.items():
        if not metrics or not _has_bounded_scores(metrics[0]):
            main = f"the main metric of {name} is {metrics[0]}" if metrics else f"{name} has no metric"
            raise _refusal(f"Pairs need a score of each answer that more of is better: {main}")


def _problems(order: RunOrder, wanted: UntilDecided) -> Iterator[Problem]:
    ranges = (
        (Range(f"{_FIELD}.margin_points", 0, MAX_MARGIN_POINTS, above=True), wanted.margin_points),
        (Range(f"{_FIELD}.alpha", 0, _MAX_ALPHA, above=True), wanted.alpha),
    )
    yield from (problem for range_, value in ranges if (problem := range_.problem(value)))
    if wanted.alpha == _MAX_ALPHA:
        yield Problem(f"{_FIELD}.alpha", f"alpha must be below {_MAX_ALPHA}.")
    if order.judge:
        yield Problem(_FIELD, "Judging runs are not decided between. Leave until_decided out.")
    if wanted.against_model == order.model:
        yield Problem(f"{_FIELD}.against_model", f"{order.model} is not compared with itself: name another.")


def _has_bounded_scores(name: str) -> bool:
    metric = METRICS.get(name)
    if metric is None or not metric.kind.is_of_each_answer or not metric.higher_is_better:
        return False
    return metric.unit.low is not None and metric.unit.high is not None


def _refusal(problem: str) -> InvalidParameter:
    return InvalidParameter(field=f"order.{_FIELD}", sentence=f"{problem}. Leave until_decided out.")
