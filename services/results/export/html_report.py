"""A self-contained HTML page with the figures of a run and charts of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from proctor.values.metrics.catalogue import REWARD_UNSUSPECTED, UNSUSPECTED
from proctor.values.metrics.metric import Unit
from proctor.values.metrics.names import unit_of
from proctor.values.rollout import suspicions_sentence
from proctor.values.run import unparsed_warning
from proctor.values.scoring import ScoringMethod
from proctor.wire.contamination import contamination_sentences
from services.results.export.exported_run import ExportedRun
from services.results.export.ports import ExportRow, RowFormat
from services.results.outcomes.timing_summary import Percentiles, TimingSummary
from services.results.statistics.figure import Figure
from services.results.summaries.proto import summary_to_proto
from services.results.summaries.run_summary import RunSummary, TaskSummary

LEFT, RIGHT, ROW_HEIGHT, TOP, BOTTOM = 260, 720, 26, 12, 28
TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)
TICKS_WITH_NEGATIVE = (-1.0, -0.5, 0.0, 0.5, 1.0)
_PAGE = "report.html.j2"


@dataclass(frozen=True, slots=True)
class Bar:
    """A row: its label, its figure as text, and the positions of the figure and of its interval's ends."""

    label: str
    text: str
    y: float
    x: float
    x_low: float | None
    x_high: float | None


@dataclass(frozen=True, slots=True)
class Tick:
    text: str
    x: float


@dataclass(frozen=True, slots=True)
class IntervalChart:
    width: int
    height: int
    bars: tuple[Bar, ...]
    ticks: tuple[Tick, ...]
    zero: float


def interval_chart(figures: Sequence[tuple[str, Figure]]) -> IntervalChart | None:
    """Figures between −1 and 1, from top to bottom; None where there is none."""
    if not figures:
        return None
    lowest = min(figure.ci_low if figure.ci_low is not None else figure.mean or 0.0 for _, figure in figures)
    ticks = TICKS if lowest >= 0 else TICKS_WITH_NEGATIVE
    bars = [_bar(row, label, figure, ticks[0]) for row, (label, figure) in enumerate(figures)]
    height = TOP + ROW_HEIGHT * len(bars) + BOTTOM
    marks = tuple(Tick(f"{tick:g}", _x(tick, ticks[0])) for tick in ticks)
    return IntervalChart(RIGHT + 80, height, tuple(bars), marks, _x(0.0, ticks[0]))


def _bar(row: int, label: str, figure: Figure, start: float) -> Bar:
    assert figure.mean is not None
    has_interval = figure.ci_low is not None and figure.ci_high is not None
    return Bar(
        label,
        f"{figure.mean:.3f}",
        TOP + ROW_HEIGHT * (row + 0.5),
        _x(figure.mean, start),
        _x(figure.ci_low, start) if has_interval and figure.ci_low is not None else None,
        _x(figure.ci_high, start) if has_interval and figure.ci_high is not None else None,
    )


def _x(value: float, start: float) -> float:
    share = (min(max(value, start), 1.0) - start) / (1.0 - start)
    return round(LEFT + share * (RIGHT - LEFT), 1)


@dataclass(frozen=True, slots=True)
class AnswerShares:
    """Percent of a task's samples by what became of them; what is missing to 100 has no outcome yet."""

    task: str
    scored: float
    unparsed: float
    failed: float


class HtmlReport:
    def __init__(self, run: ExportedRun) -> None:
        self._run = run

    def begin(self) -> bytes:
        summary = self._run.summary
        return (
            _environment()
            .get_template(_PAGE)
            .render(
                run=self._run,
                facts=self._run.record.plan.facts,
                summary=summary,
                chart=_chart(summary),
                has_figures=any(task.figures for task in summary.tasks),
                shares=[_shares(task) for task in summary.tasks],
                notes=_notes(self._run),
                times=_times(summary.timing),
            )
            .encode()
        )

    def write(self, _: Sequence[ExportRow]) -> bytes:
        return b""

    def end(self) -> bytes:
        return b""


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(figure=_figure_text, interval=_interval_text, method=_method_text)
    return environment


def _figure_text(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.4f}"


def _interval_text(figure: Figure) -> str:
    if figure.ci_low is None or figure.ci_high is None:
        return "–"
    return f"{figure.ci_low:.4f} to {figure.ci_high:.4f}"


def _method_text(method: ScoringMethod | None) -> str:
    return method.in_words if method else "–"


def _chart(summary: RunSummary) -> IntervalChart | None:
    """The main metric of each task; those on another scale than 0 to 1 are in the table only."""
    mains = [
        (f"{task.task} · {name}", figure)
        for task in summary.tasks
        for name, figure in _main(task)
        if figure.mean is not None and (unit_of(name) or Unit.NUMBER).is_of_one
    ]
    return interval_chart(mains)


def _main(task: TaskSummary) -> Sequence[tuple[str, Figure]]:
    return list(task.figures.items())[:1]


def _shares(task: TaskSummary) -> AnswerShares:
    total = max(task.total, 1)
    scored = task.answered - task.unparsed
    return AnswerShares(
        task.task, 100 * scored / total, 100 * task.unparsed / total, 100 * task.failed / total
    )


def _times(timing: TimingSummary) -> list[tuple[str, Percentiles]]:
    spreads = {
        "queue, s": timing.queue,
        "to the first token, s": timing.first_token,
        "between tokens, s": timing.between_tokens,
        "whole answer, s": timing.total,
        "tokens per second": timing.tokens_per_second,
    }
    return [(name, spread) for name, spread in spreads.items() if spread]


def _notes(run: ExportedRun) -> list[str]:
    """Notes without which the figures could be misread."""
    summary, facts = run.summary, run.record.plan.facts
    is_unscored = all(scoring.is_unscored for scoring in run.record.plan.scorings)
    is_judging = run.record.plan.judged_run_id is not None
    unparsed = unparsed_warning(summary.unparsed_rate, is_judging=is_judging)
    stand_ins = [task.task for task in summary.tasks if task.is_stand_in]
    notes = {
        "Not every sample has an outcome yet: these figures are partial.": summary.is_partial,
        "Answers were kept and held against nothing: no metrics were ordered.": is_unscored,
        f"Only the first {facts.limit} rows of each task were asked.": facts.limit is not None,
        f"Stand-in rows, not the official split: {', '.join(stand_ins)}.": bool(stand_ins),
        f"Tasks of the suite that were not asked: {', '.join(facts.missing_tasks)}.": bool(
            facts.missing_tasks
        ),
        "Prompts longer than the context were cut from the left.": summary.is_truncated_left,
        f"{summary.failed} failures of the machinery are left out of every figure.": summary.failed > 0,
        _unparsed(summary, is_judging=is_judging): summary.unparsed > 0,
        _suspicions(summary): bool(_suspicions(summary)),
        unparsed: bool(unparsed),
    }
    return [
        *(note for note, applies in notes.items() if applies),
        *contamination_sentences(summary_to_proto(summary)),
    ]


def _unparsed(summary: RunSummary, *, is_judging: bool) -> str:
    if is_judging:
        return f"{summary.unparsed} verdicts could not be parsed; they have no score."
    return f"{summary.unparsed} answers could not be parsed; they count as not right."


def _suspicions(summary: RunSummary) -> str:
    """Of rollouts, whose suite is one task; empty where none is suspicious."""
    means = {name: figure.mean for task in summary.tasks for name, figure in task.figures.items()}
    sentence = suspicions_sentence(
        means.get(UNSUSPECTED), means.get(REWARD_UNSUSPECTED), summary.answered, is_whole=not summary.failed
    )
    return f"Of the rollouts {sentence}." if sentence else ""


HTML = RowFormat(".html", "text/html; charset=utf-8", HtmlReport, rows=None, has_figures=True)
