"""A run as clients of the benchmark API see it."""

from datetime import UTC, datetime

import pytest

from proctor.v1 import run_pb2, summary_pb2
from services.gateway.api.runs.job import job_results
from services.gateway.api.runs.routes import duration_text
from services.scheduler.runs.reads.proto import run_to_proto
from tests.fakes.scheduler.scheduler_harness import TIME_LIMIT, SchedulerHarness

NOW = datetime(2026, 1, 1, 0, 1, 40, tzinfo=UTC)


def running() -> run_pb2.Run:
    run = run_pb2.Run(run_id="r1", state=run_pb2.RUN_STATE_RUNNING)
    run.order.suite, run.order.model = "glue", "vllm/starter"
    run.admitted_at.FromDatetime(datetime(2026, 1, 1, tzinfo=UTC))
    run.progress.total, run.progress.recorded, run.progress.phase = 300, 100, "running"
    return run


def summary() -> summary_pb2.RunSummary:
    accuracy = summary_pb2.MetricFigure(
        metric="acc", mean=0.75, stderr=0.1, std=0.1, ci_low=0.5, ci_high=0.9, n=16
    )
    undefined = summary_pb2.MetricFigure(metric="mcc", n=0)
    sst2 = summary_pb2.TaskSummary(
        task="sst2",
        answered=16,
        metrics=[accuracy],
        is_stand_in=True,
        scoring_method=run_pb2.SCORING_METHOD_LOGLIKELIHOOD,
    )
    cola = summary_pb2.TaskSummary(task="cola", metrics=[undefined])
    return summary_pb2.RunSummary(
        tasks=[sst2, cola], answered=16, unparsed=2, failures={"timeout": 3}, problems=["mcc"]
    )


def test_running_job_shows_its_progress_and_partial_figures() -> None:
    body = job_results(running(), summary(), NOW).model_dump()
    assert body["status"] == "running"
    assert body["progress"] == {"completed": 100, "total": 300, "percent": 33.3, "current_step": "running"}
    assert body["performance_data"]["glue"]["sst2"]["acc"] == {
        "mean": 0.75,
        "std": 0.1,
        "stderr": 0.1,
        "ci95": (0.5, 0.9),
        "n": 16,
        "scoring_method": "loglikelihood",
        "within_std": None,
    }
    assert body["failures"] == {"timeout": 3}
    assert body["problems"] == ["mcc"]
    assert body["unparsed"] == 2
    assert body["completed_at"] is None


def test_times_show_how_they_are_spread_and_omit_unknown_ones() -> None:
    spread = summary_pb2.Percentiles(n=16, mean=0.5, std=0.1, p50=0.4, p90=0.8, p95=0.9, p99=1.0)
    reported = summary()
    reported.timing.total.CopyFrom(spread)
    shown = job_results(running(), reported, NOW).model_dump(exclude_defaults=True)
    figures = {"n": 16, "mean": 0.5, "std": 0.1, "p50": 0.4, "p90": 0.8, "p95": 0.9, "p99": 1.0}
    assert shown["timing"] == {"total_seconds": figures}


def test_undefined_figure_is_null_and_never_a_number() -> None:
    figure = job_results(running(), summary(), NOW).performance_data["glue"]["cola"]["mcc"]
    shown = figure.model_dump(exclude_defaults=True)
    assert shown == {"mean": None, "std": None, "stderr": None, "ci95": None, "n": 0}


def test_groups_stand_beside_the_tasks_with_their_scoring_and_what_they_miss() -> None:
    reported = summary()
    reported.tasks[1].scoring_method = run_pb2.SCORING_METHOD_GENERATE
    score = summary_pb2.MetricFigure(metric="score", mean=0.75, n=16)
    accuracy = summary_pb2.MetricFigure(metric="acc", mean=0.75, n=16)
    reported.groups.add(
        group="glue", tasks=["sst2", "cola"], missing_tasks=["rte"], metrics=[score, accuracy]
    )
    group = job_results(running(), reported, NOW).groups["glue"]
    assert (group.tasks, group.missing_tasks) == (["sst2", "cola"], ["rte"])
    assert (group.figures["score"].mean, group.figures["score"].scoring_method) == (
        0.75,
        "loglikelihood, generate",
    )
    assert group.figures["acc"].scoring_method == "loglikelihood"


def test_rates_are_of_what_came_to_an_end_and_null_where_nothing_did() -> None:
    reported = summary()
    reported.tasks[0].unparsed, reported.tasks[0].failed = 4, 4
    tasks = job_results(running(), reported, NOW).tasks
    assert (tasks["sst2"].unparsed_rate, tasks["sst2"].failed_rate) == (0.25, 0.2)
    assert (tasks["cola"].unparsed_rate, tasks["cola"].failed_rate) == (None, None)


def test_summary_counts_only_tasks_that_were_evaluated_and_names_stand_ins() -> None:
    reported = job_results(running(), summary(), NOW).summary
    assert reported.total_evaluations == 1
    assert reported.benchmarks_run == ["sst2"]
    assert reported.total_time_seconds == 100.0
    assert reported.stand_in == ["sst2"]
    assert reported.scoring_method["sst2"] == "loglikelihood"


def test_time_of_a_job_is_that_which_it_was_running() -> None:
    run = running()
    run.started_at.FromDatetime(datetime(2025, 12, 31, tzinfo=UTC))
    run.ran_seconds = 30.0
    assert job_results(run, summary(), NOW).summary.total_time_seconds == 130.0
    run.finished_at.FromDatetime(datetime(2026, 1, 1, 0, 0, 10, tzinfo=UTC))
    assert job_results(run, summary(), NOW).summary.total_time_seconds == 40.0
    run.earlier_seconds = 100.0
    assert job_results(run, summary(), NOW).summary.total_time_seconds == 140.0
    run.ClearField("admitted_at")
    assert job_results(run, summary(), NOW).summary.total_time_seconds == 130.0


def test_job_before_planning_has_no_percent_and_says_why_it_waits() -> None:
    run = run_pb2.Run(run_id="r1", state=run_pb2.RUN_STATE_PENDING)
    run.wait.position, run.wait.blocked_by = 2, "3 runs are running, the most at a time"
    body = job_results(run, summary_pb2.RunSummary(), NOW)
    assert body.progress.percent == 0.0
    assert body.wait is not None
    assert body.wait.position == 2
    assert body.wait.estimated_seconds is None
    run.wait.estimated_seconds = 90.0
    reported = job_results(run, summary_pb2.RunSummary(), NOW).wait
    assert reported is not None
    assert reported.estimated_seconds == 90.0
    assert body.summary.total_time_seconds == 0.0


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [
        ("DEADLINE_REACHED", "Job execution failed: 3 h passed."),
        ("TOO_MANY_FAILURES", "AI provider error: 3 h passed."),
        ("ROWS_UNAVAILABLE", "3 h passed."),
    ],
)
def test_failed_job_says_why_in_the_known_form(reason: str, sentence: str) -> None:
    run = running()
    run.state = run_pb2.RUN_STATE_FAILED
    run.error.reason, run.error.message = reason, "3 h passed."
    assert job_results(run, summary(), NOW).error == sentence


async def test_time_limit_is_said_once_as_the_scheduler_writes_it() -> None:
    scheduler = SchedulerHarness()
    order, driver = await scheduler.start()
    scheduler.clock.seconds += TIME_LIMIT.total_seconds()
    ended = await scheduler.finish(order.run_id, driver)
    shown = job_results(run_to_proto(ended), summary_pb2.RunSummary(), NOW).error
    known = "Job execution failed: Resource limits exceeded (time): the run took longer than 3:00:00 "
    assert shown.startswith(known)
    assert shown.count("Resource limits exceeded") == 1


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.0, "under 1 minute"), (60.0, "1-2 minutes"), (1200.0, "10-30 minutes"), (20000.0, "over 3 hours")],
)
def test_estimate_is_reported_as_a_range(seconds: float, words: str) -> None:
    assert duration_text(seconds) == words
    assert "unknown" in duration_text(None)
