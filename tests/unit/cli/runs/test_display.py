"""Display of a run while it goes and when it has ended."""

import io

import pytest
from rich.console import Console

from proctor.cli.render import words as run_words
from proctor.cli.results.figures import print_summary
from proctor.cli.runs.display import RunDisplay, draw_progress, progress_line
from proctor.v1 import rollout_pb2, run_pb2, summary_pb2


def console() -> Console:
    return Console(file=io.StringIO(), width=120, color_system=None)


def text_of(shown: Console) -> str:
    assert isinstance(shown.file, io.StringIO)
    return shown.file.getvalue()


def running(completed: int) -> run_pb2.Run:
    run = run_pb2.Run(run_id="r1", state=run_pb2.RUN_STATE_RUNNING)
    run.order.suite, run.order.model = "glue", "vllm/starter"
    run.progress.total, run.progress.recorded, run.progress.phase = 400, completed, "running"
    run.progress.samples_per_second, run.progress.eta_seconds = 50.0, 75.0
    run.progress.tasks.add(task="sst2", total=400, recorded=completed, failed=3, is_stand_in=True)
    run.progress.failures["rate_limit"] = 3
    return run


def test_the_tasks_own_solutions_are_no_models_answers() -> None:
    shown, run = console(), running(100)
    run.order.agent_kind = rollout_pb2.AGENT_KIND_ORACLE
    shown.print(draw_progress(run))
    assert "glue × the tasks' own solutions" in text_of(shown)
    assert "starter" not in text_of(shown)


def test_live_progress_shows_tasks_rate_and_failures() -> None:
    shown = console()
    shown.print(draw_progress(running(100)))
    for part in (
        "glue × vllm/starter",
        "sst2 (stand-in)",
        "100/400",
        "50.0 samples/s",
        "ETA 1:15",
        "rate limit 3",
    ):
        assert part in text_of(shown)


@pytest.mark.parametrize(
    ("state", "word"),
    [
        (run_pb2.RUN_STATE_COMPLETED, "done"),
        (run_pb2.RUN_STATE_FAILED, "failed"),
        (run_pb2.RUN_STATE_CANCELLED, "cancelled"),
    ],
)
def test_run_that_came_to_nothing_is_not_called_done(state: run_pb2.RunState.ValueType, word: str) -> None:
    run = running(100)
    run.state, run.progress.phase = state, "done"
    assert run_words.phase(run) == word


def test_what_a_run_has_cost_is_shown_where_its_model_has_a_price() -> None:
    assert "cost" not in progress_line(running(100))
    run, shown = running(100), console()
    run.price.currency, run.progress.cost = "EUR", 0.0125
    assert "· cost 0.0125 EUR ·" in progress_line(run)
    summary = summary_pb2.RunSummary(cost=0.05, price=run.price)
    summary.tasks.add(task="sst2", total=400)
    print_summary(shown, run, summary)
    assert "Cost: 0.05 EUR\n" in text_of(shown)
    summary.price.as_of = "2026-09-01"
    print_summary(shown, run, summary)
    assert "Cost: 0.05 EUR (prices of 2026-09-01)\n" in text_of(shown)


def test_run_over_a_data_set_has_its_name_tokens_and_the_range_of_the_time_left() -> None:
    run, shown = running(100), console()
    run.order.suite, run.order.dataset_id, run.dataset_name = "", "ds_1", "rows.jsonl"
    run.progress.tokens_per_second = 1234.5
    run.progress.eta_low_seconds, run.progress.eta_high_seconds = 60.0, 110.0
    shown.print(draw_progress(run))
    assert "rows.jsonl × vllm/starter" in text_of(shown)
    speed = "50.0 samples/s · 1,234 tok/s · ETA 1:15 (1:00 to 1:50)"
    assert speed in text_of(shown)
    assert speed in progress_line(run)


@pytest.mark.parametrize(("high", "shown"), [(240.0, "(1:00 to 4:00)"), (241.0, ""), (6912.0, "")])
def test_range_of_the_time_left_is_shown_up_to_four_times_its_low_end(high: float, shown: str) -> None:
    run = running(100)
    run.progress.eta_low_seconds, run.progress.eta_high_seconds = 60.0, high
    assert progress_line(run).partition("ETA ")[2].startswith(f"1:15 {shown}".strip() + " · ")


def test_range_that_begins_at_once_is_not_shown() -> None:
    run = running(399)
    run.progress.eta_seconds = run.progress.eta_low_seconds = 0.0
    run.progress.eta_high_seconds = 6912.0
    assert "ETA 0.0 s · " in progress_line(run)


def test_speed_of_a_run_is_shown_with_and_without_the_load_of_its_model() -> None:
    run, summary = finished()
    summary.answering_seconds = 2.0
    shown = console()
    print_summary(shown, run, summary)
    assert "49.6 samples/s with and 198.5 samples/s without the 6.0 s of planning" in text_of(shown)
    # Others are loaded elsewhere, or while they answer.
    assert ("loading the model" in " ".join(text_of(shown).split())) is run.order.model.startswith("vllm/")
    summary.answering_seconds = 7.5
    shown = console()
    print_summary(shown, run, summary)
    assert "49.6 samples/s, " in text_of(shown)


def test_answers_that_no_metric_was_ordered_for_have_counts_and_no_figures() -> None:
    run, shown = run_pb2.Run(run_id="r1", dataset_name="rows.jsonl"), console()
    run.state, run.order.dataset_id = run_pb2.RUN_STATE_COMPLETED, "ds_1"
    summary = summary_pb2.RunSummary(answered=1999, total=2000)
    summary.tasks.add(task="rows", total=2000, answered=1999)
    print_summary(shown, run, summary)
    reported = "Answers: 1,999 of 2,000 to rows.jsonl, kept and not scored: no metric was ordered\n"
    assert reported in text_of(shown)
    for word in ("95 % interval", "Unparsed"):
        assert word not in text_of(shown)


def test_waiting_run_says_why() -> None:
    run = run_pb2.Run(state=run_pb2.RUN_STATE_PENDING)
    run.wait.position, run.wait.blocked_by = 2, "3 runs are running"
    assert progress_line(run) == "waiting, number 2 in the queue: 3 runs are running"
    run.wait.estimated_seconds, run.wait.estimated_low_seconds, run.wait.estimated_high_seconds = 0, 0, 0
    assert progress_line(run) == "waiting, number 2 in the queue: 3 runs are running"
    run.wait.estimated_seconds, run.wait.estimated_low_seconds, run.wait.estimated_high_seconds = 90, 45, 180
    assert (
        progress_line(run)
        == "waiting, number 2 in the queue: 3 runs are running; starts in about 1:30 (45.0 s to 3:00)"
    )


def test_plain_progress_is_sparse() -> None:
    shown, now = console(), [0.0]
    display = RunDisplay(shown, lambda: now[0])
    for completed in range(0, 401, 4):
        now[0] += 0.01
        display.show(running(completed))
    lines = text_of(shown).splitlines()
    assert len(lines) == 5
    assert lines[-1].startswith("running · 400/400 (100 %)")


def test_plain_progress_shows_life_every_ten_seconds() -> None:
    shown, now = console(), [0.0]
    display = RunDisplay(shown, lambda: now[0])
    for _ in range(3):
        display.show(running(1))
        now[0] += 10.0
    assert len(text_of(shown).splitlines()) == 3


def finished() -> tuple[run_pb2.Run, summary_pb2.RunSummary]:
    run = running(400)
    run.state = run_pb2.RUN_STATE_FAILED
    run.error.message = "Too many samples failed."
    run.admitted_at.FromSeconds(100)
    run.finished_at.FromSeconds(108)
    known = summary_pb2.MetricFigure(metric="acc", mean=0.8, ci_low=0.7, ci_high=0.9, n=397)
    unknown = summary_pb2.MetricFigure(metric="mcc", n=0)
    task = summary_pb2.TaskSummary(
        task="sst2",
        is_stand_in=True,
        row_source="nyu-mll/glue sst2",
        failed=3,
        unparsed=1,
        scoring_method=run_pb2.SCORING_METHOD_LOGLIKELIHOOD,
        metrics=[known, unknown],
    )
    summary = summary_pb2.RunSummary(
        tasks=[task],
        failures={"rate_limit": 3},
        total=400,
        answered=397,
        unparsed=1,
        problems=["mcc of sst2 cannot be computed: ZeroDivisionError."],
    )
    summary.usage.prompt_tokens, summary.usage.completion_tokens = 1000, 200
    summary.usage.reasoning_tokens = 150
    return run, summary


def test_summary_shows_all_that_one_must_know_to_read_it() -> None:
    shown = console()
    print_summary(shown, *finished())
    parts = (
        "0.8000 ± 0.1000",
        "0.7000 to 0.9000",
        "397",
        "loglikelihood",
        "rate limit 3 (of 400 samples; never scored)",
        "Unparsed answers: 1",
        "1000 prompt, 200 completion (150 of reasoning)",
        "8.0 s in all",
        "Stand-in rows, not the official split: sst2 (nyu-mll/glue sst2)",
        "Undefined: mcc of sst2 cannot be computed: ZeroDivisionError.",
        "Run r1 failed: Too many samples failed.",
    )
    for part in parts:
        assert part in text_of(shown)


def test_undefined_figure_is_a_dash() -> None:
    shown = console()
    print_summary(shown, *finished())
    line = next(line for line in text_of(shown).splitlines() if "mcc" in line)
    assert line.count("–") == 2


@pytest.mark.parametrize(("seconds", "words"), [(2.44, "2.4 s"), (65, "1:05"), (3665, "1:01:05")])
def test_duration_reads_well(seconds: float, words: str) -> None:
    assert run_words.duration(seconds) == words
