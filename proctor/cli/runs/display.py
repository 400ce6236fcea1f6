"""A run as it goes: bars on a terminal, a line now and then elsewhere."""

import time
from collections.abc import Callable
from typing import Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from proctor.cli.render import words as run_words
from proctor.cli.render.terminal import say
from proctor.v1 import run_pb2

_BAR_WIDTH = 40
_PLAIN_EVERY_SECONDS = 10.0
_PLAIN_EVERY_SHARE = 0.25


class RunDisplay(Protocol):
    """Shows a run again and again until it is closed."""

    def show(self, run: run_pb2.Run) -> None: ...

    def note(self, text: str) -> None:
        """Says something beside the run: the gateway is away."""
        ...

    def pause(self) -> None:
        """Leaves the terminal to a question."""
        ...

    def resume(self) -> None:
        """Takes the terminal back."""
        ...

    def close(self) -> None: ...


class LiveDisplay:
    """One bar per task, redrawn in place."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._is_paused = False
        self._latest: run_pb2.Run | None = None

    def show(self, run: run_pb2.Run) -> None:
        self._latest = run
        if self._is_paused:
            return
        if self._live is None:
            self._live = Live(console=self._console, refresh_per_second=8)
            self._live.start()
        self._live.update(draw_progress(run))

    def note(self, text: str) -> None:
        self._console.print(text, style="yellow")

    def pause(self) -> None:
        self._is_paused = True
        self.close()

    def resume(self) -> None:
        self._is_paused = False
        if self._latest is not None:
            self.show(self._latest)

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None


class PlainDisplay:
    """A line when the step changes, at each quarter and every ten seconds."""

    def __init__(self, console: Console, now: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._now = now
        self._told_step = ""
        self._told_share = 0.0
        self._told_at = -_PLAIN_EVERY_SECONDS

    def show(self, run: run_pb2.Run) -> None:
        progress = run.progress
        share = progress.completed / progress.total if progress.total else 0.0
        step = run_words.step(run)
        is_due = self._now() - self._told_at >= _PLAIN_EVERY_SECONDS
        if step != self._told_step or share - self._told_share >= _PLAIN_EVERY_SHARE or is_due:
            self._told_step, self._told_share, self._told_at = step, share, self._now()
            say(self._console, progress_line(run))

    def note(self, text: str) -> None:
        say(self._console, text)

    def pause(self) -> None:
        """Lines are in nobody's way."""

    def resume(self) -> None:
        """It was never gone."""

    def close(self) -> None:
        """Every line is out already."""


def display_for(console: Console) -> RunDisplay:
    return LiveDisplay(console) if console.is_terminal else PlainDisplay(console)


def progress_line(run: run_pb2.Run) -> str:
    progress = run.progress
    share = f"{progress.completed}/{progress.total} ({_percent(progress)})" if progress.total else ""
    failed = run_words.failures(dict(progress.failures))
    failures = f"failed: {failed}" if failed else ""
    parts = (run_words.step(run), share, run_words.pace(progress), run_words.cost(run), failures)
    return " · ".join(part for part in parts if part)


def draw_progress(run: run_pb2.Run) -> RenderableType:
    head = Text.assemble(
        (f"{run_words.subject(run)} × {run.order.model}", "bold"),
        "  ",
        (run_words.step(run), run_words.STATE_STYLES.get(run.state, "")),
    )
    foot = [f"{run.progress.completed}/{run.progress.total} samples"] if run.progress.total else []
    foot += [run_words.pace(run.progress), run_words.cost(run)]
    lines: list[RenderableType] = [
        head,
        _bars(run.progress),
        Text(" · ".join(part for part in foot if part), "dim"),
    ]
    failed = run_words.failures(dict(run.progress.failures))
    if failed:
        lines.append(Text(f"failed: {failed}", "red"))
    return Group(*lines)


def _bars(progress: run_pb2.RunProgress) -> Table:
    table = Table.grid(padding=(0, 1))
    for task in progress.tasks:
        bar = ProgressBar(total=max(task.total, 1), completed=task.completed, width=_BAR_WIDTH)
        name = f"{task.task} (stand-in)" if task.is_stand_in else task.task
        unparsed = Text(f"{task.unparsed} unparsed", "yellow") if task.unparsed else Text("")
        failed = Text(f"{task.failed} failed", "red") if task.failed else Text("")
        table.add_row(name, bar, f"{task.completed}/{task.total}", unparsed, failed)
    return table


def _percent(progress: run_pb2.RunProgress) -> str:
    return f"{100 * progress.completed / progress.total:.0f} %"
