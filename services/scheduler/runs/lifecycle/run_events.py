"""What is told of a run: its end, its budget, and that it brings nothing."""

from collections.abc import Mapping
from datetime import datetime

from proctor.values.names.notices import BUDGET_SHARE, STUCK_MINUTES, NoticeEvent
from proctor.values.run import RunState
from services.scheduler.notices.notice import Event
from services.scheduler.projects.project import Budget
from services.scheduler.runs.lifecycle.run import Run, RunError


def run_ended(run: Run, state: RunState, at: datetime, error: RunError | None = None) -> Event:
    """Who wants both hears of a failed run once."""
    is_failed = state is RunState.FAILED
    kinds = (*([NoticeEvent.RUN_FAILED] if is_failed else []), NoticeEvent.RUN_ENDED)
    why = f": {error.message}" if error else "."
    facts = {"state": state.value, **({"reason": error.reason} if error else {})}
    text = f"{_named(run)} {_ended(state)}{why}"
    return _event(run, kinds, f"ended {state}", text=text, at=at, facts=facts)


def budget_nearly_spent(run: Run, cost: float, at: datetime) -> Event:
    currency = run.price.currency if run.price else ""
    text = f"{_named(run)} has cost {cost:.6g} {currency} of at most {run.order.max_cost:.6g} {currency}."
    facts = {"cost": f"{cost:.6g}", "max_cost": f"{run.order.max_cost:.6g}", "currency": currency}
    what, kinds = f"budget {BUDGET_SHARE:.0%}", (NoticeEvent.BUDGET_NEARLY_SPENT,)
    return _event(run, kinds, what, text=text, at=at, facts=facts)


def project_budget_nearly_spent(run: Run, project: str, budget: Budget, at: datetime) -> Event:
    """Of the project of a run that was closed. Another budget is told of again, and so is another month."""
    currency = run.price.currency if run.price else ""
    cost, most = (f"{value:.6g}" for value in (budget.cost, budget.budget))
    project_id = run.order.project_id
    return Event(
        kinds=(NoticeEvent.BUDGET_NEARLY_SPENT,),
        key=f"project {project_id} budget {BUDGET_SHARE:.0%} of {most} {budget.period}",
        user=run.user,
        project_id=project_id,
        text=f"Project {project} has cost {cost} {currency} of at most {most} {currency} {budget.period}.",
        at=at,
        facts={
            "project": project,
            "cost": cost,
            "max_cost": most,
            "currency": currency,
            "period": budget.period,
        },
    )


def stuck(run: Run, recorded: int, at: datetime) -> Event:
    text = f"{_named(run)} has a slot and has brought no outcome for {STUCK_MINUTES} minutes."
    facts = {"recorded": str(recorded), "total": str(run.total)}
    what, kinds = f"stuck at {recorded}", (NoticeEvent.QUEUE_STUCK,)
    return _event(run, kinds, what, text=text, at=at, facts=facts)


def _event(
    run: Run,
    kinds: tuple[NoticeEvent, ...],
    what: str,
    *,
    text: str,
    at: datetime,
    facts: Mapping[str, str],
) -> Event:
    return Event(
        kinds=kinds,
        key=f"run {run.run_id} {run.epoch} {what}",
        user=run.user,
        project_id=run.order.project_id,
        text=text,
        at=at,
        facts={
            "run_id": run.run_id,
            "name": run.labels.name,
            "user": run.user,
            "model": run.order.model,
            "benchmark": run.dataset_name or run.suite_name,
            **facts,
        },
    )


def _named(run: Run) -> str:
    of = f"{run.order.model} on {run.dataset_name or run.suite_name}"
    return f"Run {run.labels.name} ({of})" if run.labels.name else f"The run of {of}"


def _ended(state: RunState) -> str:
    return {RunState.COMPLETED: "is completed", RunState.FAILED: "has failed"}.get(state, f"is {state}")
