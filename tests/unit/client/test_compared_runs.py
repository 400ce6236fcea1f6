"""Differences and the progress of runs as a notebook and a terminal show them."""

import re
from io import StringIO

from proctor.client.compared_runs import ComparedRuns
from proctor.client.html_table import Interval, html_table
from proctor.client.progress_line import ProgressLine
from proctor.v1 import comparison_pb2, run_pb2

HOSTILE = "<img src=x>"


def compared(model: str = "openai/a") -> ComparedRuns:
    comparison = comparison_pb2.Comparison(benchmark="glue", corrected_over=2, warnings=["Other shots."])
    comparison.runs.add(model=model)
    comparison.runs.add(model="openai/b")
    known = {"first": 0, "second": 1, "task": "rte", "metric": "acc"}
    comparison.differences.add(
        **known, difference=0.25, ci_low=0.125, ci_high=0.375, adjusted_p_value=0.01, pairs=277,
        verdict=comparison_pb2.VERDICT_FIRST_BETTER,
    )  # fmt: skip
    comparison.differences.add(first=0, second=1, metric="f1", verdict=comparison_pb2.VERDICT_UNDEFINED)
    return ComparedRuns(comparison)


def test_programs_read_rows_and_a_terminal_shows_lines() -> None:
    known, unknown = compared().differences
    assert (known.first, known.second, known.p, known.verdict) == (
        "openai/a",
        "openai/b",
        0.01,
        "first better",
    )
    assert (unknown.difference, unknown.ci_low, unknown.verdict) == (None, None, "undefined")
    title, _, first, second = str(compared()).splitlines()
    assert title == "glue: first minus second, p corrected over 2 tests. Other shots."
    assert first.endswith("rte        acc     0.25        0.125 to 0.375  0.01       first better")
    assert "all tasks" in second


def test_other_conditions_and_unparsed_answers_are_named() -> None:
    comparison = compared().comparison
    comparison.conditions.add(name="temperature", values=["1.0", "0"])
    comparison.conditions.add(name="shots", values=["0", "5"], tasks=["rte"])
    comparison.differences[0].depends_on_unparsed = True
    title, _, first, _ = str(ComparedRuns(comparison)).splitlines()
    assert "Other conditions: temperature 1.0 against 0; shots of rte 0 against 5. Other shots." in title
    assert first.endswith("first better, depends on unparsed answers")
    known, unknown = ComparedRuns(comparison).differences
    assert (known.depends_on_unparsed, unknown.depends_on_unparsed) == (True, False)


def test_notebook_draws_each_interval_on_one_scale_with_its_origin() -> None:
    shown = compared()._repr_html_()
    assert shown.count("<svg") == shown.count("<tr>") - 1 == 2
    # Zero stands in each row, the figure and its interval in one.
    assert (shown.count('stroke="#888"'), shown.count("<circle"), shown.count('stroke="#36c"')) == (2, 1, 1)
    assert HOSTILE not in compared(HOSTILE)._repr_html_()


def test_scale_holds_every_interval() -> None:
    shown = html_table(
        "t", ("plot",), [(Interval(30.0, 10.0, 50.0),), (Interval(-5.0, None, None),)], origin=0.0
    )
    positions = [float(each) for each in re.findall(r'(?:x1|x2|cx)="([\d.]+)"', shown)]
    assert min(positions) >= 0
    assert max(positions) <= 160
    assert "nan" not in html_table("t", ("plot",), [(Interval(7.0, 7.0, 7.0),)], origin=None)


def test_progress_is_written_over_and_ends_with_the_run() -> None:
    out = StringIO()
    line = ProgressLine(out)
    run = run_pb2.Run(state=run_pb2.RUN_STATE_RUNNING)
    run.order.model = "openai/a"
    run.progress.total, run.progress.recorded, run.progress.phase = 200, 50, "answering, a long phase"
    line.show(run)
    run.state, run.progress.recorded = run_pb2.RUN_STATE_COMPLETED, 200
    line.show(run)
    before, after = out.getvalue().split("\r")[1:]
    assert "50 of 200 · answering, a long phase" in before
    assert "200 of 200 · completed" in after
    assert len(after.rstrip("\n")) == len(before)
    assert out.getvalue().count("\n") == 1
