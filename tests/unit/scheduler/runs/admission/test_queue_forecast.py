"""The forecast takes the measured speed of running runs, what is left of preempted ones, and deadlines."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from proctor.values.priority import Priority
from proctor.values.run import RunCounts, RunId, RunState, TaskCounts
from proctor.values.scoring import ScoringMethod
from services.scheduler.runs.admission.forecast_queue import (
    MeasuredRun,
    PastOfBenchmarks,
    QueueForecast,
    QueueMoment,
)
from services.scheduler.runs.admission.planned_rows import PlannedRows
from services.scheduler.runs.admission.run_estimate import CompletedRun, PastRuns, TimeEstimate
from services.scheduler.runs.admission.run_queue import PendingRun, QueuedRuns
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.orders.run_order import RunOrder
from tests.fakes.scheduler.surroundings import START
from tests.fakes.scheduler_rules import queue_limits

ORDER = RunOrder("toy", "openai/fake")
_PRIORITIES = (("a", Priority.HIGH), ("b", Priority.NORMAL))
ONE_PAST_RUN: PastRuns = {("toy", "openai/fake"): [CompletedRun((), None, 1, 100, 50.0)]}


def run(name: str, **changes: object) -> Run:
    fresh = Run(RunId(name), ORDER, "local", "remote", ScoringMethod.GENERATE, START)
    return replace(fresh, **changes)  # type: ignore[arg-type]  # names are checked by replace


def running(name: str, **changes: object) -> Run:
    planned = run(name, state=RunState.RUNNING, planned_epoch=1, total=100, admitted_at=START)
    return replace(planned, **changes)  # type: ignore[arg-type]  # names are checked by replace


def at(recorded: int, samples_per_second: float | None = None) -> MeasuredRun:
    return MeasuredRun(RunCounts(1, (TaskCounts("t", recorded),)), samples_per_second)


def forecast(
    runs: list[Run],
    waiting: list[Run],
    speeds: Mapping[RunId, MeasuredRun] | None = None,
    history: PastRuns = ONE_PAST_RUN,
    rows: Mapping[str, Sequence[PlannedRows]] | None = None,
) -> QueueForecast:
    queue = QueuedRuns(runs, [PendingRun(each, START) for each in waiting], len(waiting))
    moment = QueueMoment(queue, queue_limits(max_running_runs=1), START, frozenset({"remote"}))
    return QueueForecast(moment, speeds or {}, PastOfBenchmarks(history, rows or {}))


def estimate(reported: QueueForecast, name: str) -> TimeEstimate | None:
    wait = reported.wait(RunId(name))
    assert wait is not None
    return wait.estimate


def test_the_speed_of_now_is_reported_with_that_of_earlier_runs_as_a_band() -> None:
    reported = forecast([running("a")], [run("b")], {RunId("a"): at(60, samples_per_second=4)})
    assert estimate(reported, "b") == TimeEstimate(10, 10, 20)


def test_without_a_speed_the_time_left_is_estimated_from_earlier_runs() -> None:
    reported = forecast([running("a")], [run("b")], {RunId("a"): at(60)})
    assert estimate(reported, "b") == TimeEstimate(20, 10, 40)


def test_no_run_takes_longer_than_its_deadline() -> None:
    soon = running("a", deadline=START + timedelta(seconds=15))
    assert estimate(forecast([soon], [run("b")], {RunId("a"): at(60)}), "b") == TimeEstimate(15, 10, 15)


def test_a_run_that_was_preempted_has_less_to_do() -> None:
    preempted = run("b", planned_epoch=1, total=100)
    reported = forecast([running("a")], [preempted, run("c")], {RunId("a"): at(100), RunId("b"): at(90)})
    assert estimate(reported, "c") == TimeEstimate(5, 2.5, 10)


def test_a_run_ends_its_own_time_after_its_start() -> None:
    waiting = run("b")
    reported = forecast([running("a")], [waiting], {RunId("a"): at(60)})
    assert reported.time_to_end(waiting) == TimeEstimate(20 + 50, 10 + 25, 40 + 100)
    # Admitted by the time that it is looked for.
    assert reported.time_to_end(run("a")) == TimeEstimate(50, 25, 100)


def test_a_waiting_run_of_another_size_is_estimated_by_the_rows_of_earlier_runs() -> None:
    smaller = run("b", order=replace(ORDER, limit=10))
    assert forecast([], [smaller]).time_to_end(smaller) is None
    rows = {"toy": [PlannedRows((), None, {"one": 60, "two": 40})]}
    reported = forecast([], [smaller], rows=rows)
    assert reported.outcomes_left(smaller) == 20
    assert reported.time_to_end(smaller) == TimeEstimate(10, 5, 20)


def test_order_waits_behind_those_that_are_as_urgent_only() -> None:
    urgent, usual = (run(name, order=replace(ORDER, priority=each)) for name, each in _PRIORITIES)
    waiting = [PendingRun(urgent, START), PendingRun(usual, START)]
    ordered = run("c", order=replace(ORDER, priority=Priority.HIGH))
    queue = QueuedRuns((), waiting, 2).with_ordered(ordered)
    assert [each.run.run_id for each in queue.pending] == ["a", "c", "b"]
    assert queue.pending_total == 3
    # Its place is behind those that were read.
    cut = QueuedRuns((), waiting[:1], 200)
    assert cut.with_ordered(run("c", order=replace(ORDER, priority=Priority.LOW))) is cut


def test_without_speed_and_history_there_is_no_forecast() -> None:
    reported = forecast([running("a")], [run("b")], {RunId("a"): at(60)}, history={})
    assert estimate(reported, "b") is None
    assert reported.time_to_end(run("b")) is None
