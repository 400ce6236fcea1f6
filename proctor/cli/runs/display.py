"""Progress of a run: bars on a terminal, a line now and then elsewhere."""

import time
from collections.abc import Callable

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from proctor.cli.render import words
from proctor.cli.render.terminal import say
from proctor.v1 import run_pb2
from proctor.wire.rollout_orders import answering_model

_BAR_WIDTH = 40
_LINE_EVERY_SECONDS = 10.0
_LINE_EVERY_SHARE = 0.25


class RunDisplay:
    """Shows a run repeatedly until it is closed.

    On a terminal as one bar per task, redrawn in place; elsewhere as a line when the phase changes, at each
    quarter and every ten seconds.
    """

    def __init__(self, console: Console, now: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._now = now
        self._live: Live | None = None
        self._is_paused = False
        self._latest: run_pb2.Run | None = None
        self._printed: tuple[str, float, float] = ("", 0.0, -_LINE_EVERY_SECONDS)

    def show(self, run: run_pb2.Run) -> None:
        self._latest = run
        if not self._console.is_terminal:
            self._print_if_due(run)
        elif not self._is_paused:
            if self._live is None:
                self._live = Live(console=self._console, refresh_per_second=8)
                self._live.start()
            self._live.update(draw_progress(run))

    def note(self, text: str) -> None:
        """Prints a sentence beside the run, such as an outage."""
        say(self._console, text, style="yellow")

    def pause(self) -> None:
        """Clears the terminal for a question."""
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

    def _print_if_due(self, run: run_pb2.Run) -> None:
        progress = run.progress
        share = progress.recorded / progress.total if progress.total else 0.0
        phase, now = words.phase(run), self._now()
        last_phase, last_share, last_time = self._printed
        is_due = now - last_time >= _LINE_EVERY_SECONDS or share - last_share >= _LINE_EVERY_SHARE
        if is_due or phase != last_phase:
            self._printed = phase, share, now
            say(self._console, progress_line(run))


def progress_line(run: run_pb2.Run) -> str:
    progress = run.progress
    # Rounded down: only what is complete is 100 %.
    percent = 100 * progress.recorded // progress.total if progress.total else 0
    share = f"{progress.recorded}/{progress.total} ({percent} %)" if progress.total else ""
    failed = words.failures(dict(progress.failures))
    failures = f"failed: {failed}" if failed else ""
    return _joined(words.phase(run), share, words.speed(progress), words.cost(run), failures)


def draw_progress(run: run_pb2.Run) -> RenderableType:
    progress = run.progress
    title = f"{words.benchmark(run)} × {answering_model(run.order)}"
    phase = (words.phase(run), words.STATE_STYLES.get(run.state, ""))
    samples = f"{progress.recorded}/{progress.total} samples" if progress.total else ""
    lines: list[RenderableType] = [
        Text.assemble((title, "bold"), "  ", phase),
        _bars(progress),
        Text(_joined(samples, words.speed(progress), words.cost(run)), "dim"),
    ]
    failed = words.failures(dict(progress.failures))
    if failed:
        lines.append(Text(f"failed: {failed}", "red"))
    return Group(*lines)


def _bars(progress: run_pb2.RunProgress) -> Table:
    bars = Table.grid(padding=(0, 1))
    for task in progress.tasks:
        bar = ProgressBar(total=max(task.total, 1), completed=task.recorded, width=_BAR_WIDTH)
        name = f"{task.task} (stand-in)" if task.is_stand_in else task.task
        unparsed = Text(f"{task.unparsed} unparsed", "yellow") if task.unparsed else Text("")
        failed = Text(f"{task.failed} failed", "red") if task.failed else Text("")
        bars.add_row(name, bar, f"{task.recorded}/{task.total}", unparsed, failed)
    return bars


def _joined(*parts: str) -> str:
    return " · ".join(part for part in parts if part)
