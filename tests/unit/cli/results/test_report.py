"""The report of a model: which figures stand for a run, and what is printed of them."""

import io

import pytest
from rich.console import Console

from proctor.cli.results.report import ReportRow, print_report
from proctor.v1 import leaderboard_pb2, run_pb2, summary_pb2
from proctor.wire.report import (
    ReportKind,
    figures_of,
    kind_of,
    latest_complete,
    run_note,
    suspicions_of,
    suspicions_of_entry,
)


def summary_of(*metrics: str, group: tuple[str, ...] = ()) -> summary_pb2.RunSummary:
    summary = summary_pb2.RunSummary(answered=8, failed=1)
    summary.usage.prompt_tokens = 1200
    summary.tasks.add(task="first", metrics=[_figure(name) for name in metrics])
    if group:
        summary.groups.add(group="whole", metrics=[_figure(name) for name in group])
    return summary


def _figure(name: str) -> summary_pb2.MetricFigure:
    return summary_pb2.MetricFigure(metric=name, mean=0.5, ci_low=0.4, ci_high=0.6, n=8)


@pytest.mark.parametrize(
    ("summary", "names"),
    [
        (
            summary_of("pass@1", "reward", "pass@2", "pass@16", "pass^2", "pass^16"),
            ["reward", "pass@1", "pass@16", "pass^16"],
        ),
        (summary_of("pass@1", "reward"), ["reward", "pass@1"]),
        (summary_of("acc", "acc_norm", group=("acc", "score")), ["acc", "score"]),
        (summary_of("acc", group=("score",)), ["score"]),
        (summary_of("exact_match", "f1", "bleu"), ["exact_match", "f1"]),
        (summary_pb2.RunSummary(), []),
    ],
)
def test_figures_that_stand_for_a_run(summary: summary_pb2.RunSummary, names: list[str]) -> None:
    assert [figure.metric for figure in figures_of(summary)] == names


@pytest.mark.parametrize(
    ("share", "score", "answered", "failed", "sentence"),
    [
        (None, None, 20, 0, ""),
        (1.0, 0.5, 20, 0, ""),
        (0.85, 0.5, 20, 0, "3 of 20 suspicious: score without them 0.500"),
        (0.85, 0.5, 20, 1, "about 3 of 20 suspicious: score without them 0.500"),
        (0.0, None, 4, 0, "4 of 4 suspicious: score without them none"),
    ],
)
def test_suspicions_are_counted_with_the_score_of_the_others(
    share: float | None, score: float | None, answered: int, failed: int, sentence: str
) -> None:
    summary = summary_pb2.RunSummary(answered=answered, failed=failed)
    figures = summary.tasks.add(task="mine").metrics
    figures.add(metric="unsuspected", mean=share)
    figures.add(metric="reward_unsuspected", mean=score)
    assert suspicions_of(summary) == sentence
    entry = leaderboard_pb2.LeaderboardEntry(
        unsuspected=share, reward_unsuspected=score, answered=answered, failed=failed
    )
    assert suspicions_of_entry(entry) == sentence


def test_the_kind_of_a_run() -> None:
    entry = leaderboard_pb2.LeaderboardEntry(benchmark="ds_1", dataset_name="rows.jsonl")
    assert kind_of(entry, summary_of("exact_match")) is ReportKind.DATASET
    assert kind_of(leaderboard_pb2.LeaderboardEntry(benchmark="glue"), summary_of("acc")) is ReportKind.SUITE
    assert (
        kind_of(leaderboard_pb2.LeaderboardEntry(benchmark="mine"), summary_of("pass@1", "reward"))
        is ReportKind.ROLLOUTS
    )


def test_the_latest_completed_run_of_each_benchmark_counts() -> None:
    completed, failed = run_pb2.RUN_STATE_COMPLETED, run_pb2.RUN_STATE_FAILED
    given = [("glue", failed, "1"), ("glue", completed, "2"), ("glue", completed, "3"), ("qa", failed, "4")]
    entries = [
        leaderboard_pb2.LeaderboardEntry(benchmark=suite, state=state, run_id=run)
        for suite, state, run in given
    ]
    assert {suite: entry.run_id for suite, entry in latest_complete(entries).items()} == {"glue": "2"}


def test_a_report_has_a_table_for_each_kind_that_there_is() -> None:
    entry = leaderboard_pb2.LeaderboardEntry(run_id="8f3c2a10-0000-4000-8000-000000000001")
    entry.closed_at.FromSeconds(1_700_000_000)
    run = run_pb2.Run(order=run_pb2.RunOrder(limit=30, rollouts=3))
    priced = summary_of("pass@1", "reward", "pass@3")
    priced.cost, priced.price.currency = 0.25, "USD"
    priced.unparsed = 2
    rows = [
        ReportRow(ReportKind.SUITE, "glue", entry, run_pb2.Run(), summary_of("acc", group=("acc",))),
        ReportRow(ReportKind.ROLLOUTS, "mine", entry, run, priced),
    ]
    printed = io.StringIO()
    print_report(Console(file=printed, width=120), "openai/x", rows)
    text = printed.getvalue()
    for part in ("Suites", "Rollouts", "0.5000 ± 0.1000", "0.25 USD", "1,200 tok", "2023-11-14", "pass@3"):
        assert part in text, part
    assert "first 30 rows, 3 rollouts, 1 failed, 25.0% unparsed" in text
    assert "No completed run over data sets." in text


def test_a_report_says_what_an_order_chose() -> None:
    order = run_pb2.RunOrder(num_fewshot=1, reasoning=run_pb2.REASONING_SEPARATE)
    order.params.temperature, order.params.seed = 0.7, 1_234_567_890
    order.params.provider_params.update({"min_p": 0.05, "guide": "x" * 100})
    order.scoring_method, order.truncation = run_pb2.SCORING_METHOD_GENERATE, run_pb2.TRUNCATION_LEFT
    note = run_note(run_pb2.Run(order=order), summary_pb2.RunSummary())
    assert note.startswith("1 shot, temperature 0.7, seed 1234567890, ")
    assert "min_p 0.05, " in note
    assert note.endswith("scored by generate, truncation left")
    assert ("reasoning" in note, len(note) < 200) == (False, True)
    assert run_note(run_pb2.Run(), summary_pb2.RunSummary()) == ""
