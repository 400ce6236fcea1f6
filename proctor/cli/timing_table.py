"""How the times of a run's answers are spread, as a table."""

from rich.console import Console
from rich.table import Table

from proctor.cli.compact_table import compact_table
from proctor.v1 import summary_pb2

_SHARES = ("mean", "p50", "p90", "p95", "p99")


def timing_table(console: Console, timing: summary_pb2.TimingSummary) -> Table | None:
    """None where no answer tells its time, as in runs of earlier releases."""
    times = {
        "queue": timing.queue,
        "first token": timing.first_token,
        "between tokens": timing.between_tokens,
        "whole answer": timing.total,
    }
    rows = [(name, spread, *_unit(spread)) for name, spread in times.items()]
    rows.append(("tokens", timing.tokens_per_second, "/s", 1.0))
    told = [row for row in rows if row[1].n]
    if not told:
        return None
    table = compact_table(console)
    table.add_column("time of an answer")
    for column in ("", *_SHARES, "n"):
        table.add_column(column, justify="right" if column else "left", no_wrap=True)
    for name, spread, unit, factor in told:
        figures = (_number(factor * getattr(spread, share)) for share in _SHARES)
        table.add_row(name, unit, *figures, str(spread.n))
    return table


def _unit(spread: summary_pb2.Percentiles) -> tuple[str, float]:
    """One for the whole row, so that its figures can be told apart at a glance."""
    return ("s", 1.0) if spread.p50 >= 1 else ("ms", 1000.0)


def _number(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 1000 else f"{value:.0f}"
