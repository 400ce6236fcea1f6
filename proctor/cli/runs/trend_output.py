"""The trend of a suite on the terminal and as JSON. `models`: the names of the runs' models, by their ids."""

from collections.abc import Mapping

from rich.console import Console

from proctor.cli.render.table import Column, numbers, table
from proctor.cli.render.terminal import say
from proctor.cli.render.words import NONE, JsonValue, p_word
from proctor.cli.runs.trend import Trend


def print_trend(console: Console, suite: str, trend: Trend, models: Mapping[str, str]) -> None:
    rows = [
        (models[run_id], NONE if score is None else f"{score:.4f}")
        for run_id, score in zip(trend.run_ids, trend.scores, strict=True)
    ]
    columns = (Column("model"), *numbers(trend.metric or "figure"))
    console.print(table(console, columns, rows, f"trend of {suite}"))
    change = trend.change
    if change is None:
        say(console, f"The answers on {suite} allow no test of a change.", style="dim")
        return
    words = (
        f"{change.difference:+.4f} ({change.low:+.4f} to {change.high:+.4f}), "
        f"p {p_word(change.p_value)}, corrected over {len(trend.run_ids) - 1} splits"
    )
    if not change.is_shown:
        say(console, f"No change is shown on {suite}. The largest: {words}.", style="dim")
        return
    is_worse = (change.difference < 0) != trend.less_is_better
    at = models[trend.run_ids[change.at]]
    say(console, f"{suite} changes at {at}: {words}.", style="red" if is_worse else "green")


def trend_document(suite: str, trend: Trend, models: Mapping[str, str]) -> dict[str, JsonValue]:
    change = trend.change
    shown: dict[str, JsonValue] | None = None
    if change:
        shown = {
            "at": models[trend.run_ids[change.at]],
            "difference": change.difference,
            "interval": [change.low, change.high],
            "p_value": change.p_value,
            "is_shown": change.is_shown,
        }
    runs: list[JsonValue] = [
        {"model": models[run_id], "run_id": run_id, "score": score}
        for run_id, score in zip(trend.run_ids, trend.scores, strict=True)
    ]
    return {"suite": suite, "metric": trend.metric, "runs": runs, "change": shown}
