"""Views of a comparison: a sentence, and differences from the reference run on one scale."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from proctor.v1 import comparison_pb2, summary_pb2
from services.gateway.api.comparisons.conclusions import DifferenceShown, Lead, lead_of
from services.gateway.api.comparisons.routes import ComparisonShown, comparison_shown
from services.gateway.http.presentation import interval, optional
from services.gateway.pages import text
from services.gateway.pages.compare.address import CompareAddress
from services.gateway.pages.compare.samples import SamplesView
from services.gateway.pages.interval_plot import Scale

_FIRST, _SECOND = comparison_pb2.VERDICT_FIRST_BETTER, comparison_pb2.VERDICT_SECOND_BETTER
_BETTER = ("first_better", "second_better")


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """A run that is compared. `name` is short, and its own among the runs of the page."""

    index: int
    run_id: str
    model: str
    name: str
    score: float | None
    limit: int | None


@dataclass(frozen=True, slots=True)
class DifferenceRow:
    """How much the other run is above the reference run, on a task or, without a name, on all.

    `means` are those of both; `verdict` is the CSS class of its row.
    """

    task: str
    metric: str
    value: float | None
    means: Sequence[float | None]
    low: float | None
    high: float | None
    p_value: float | None
    test: str
    pairs: int
    detectable: float | None
    gained: int
    lost: int
    failed: int
    verdict: str
    remark: str

    @property
    def is_uncorrected(self) -> bool:
        """The interval excludes zero, and the corrected test does not: bare, that looks like a fault."""
        if self.verdict != "open" or self.low is None or self.high is None:
            return False
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, slots=True)
class Pairing:
    """The reference run and another run."""

    other: ComparedRun
    rows: Sequence[DifferenceRow]


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group of tasks, with the figure and the half width of its interval of each run."""

    name: str
    metric: str
    figures: Sequence[tuple[float | None, float | None]]


@dataclass(frozen=True, slots=True)
class ComparisonView:
    """A comparison, as far as figures go."""

    benchmark: str
    metric: str
    runs: Sequence[ComparedRun]
    sentence: tuple[str, str]
    pairings: Sequence[Pairing]
    groups: Sequence[GroupRow]
    scale: Scale
    corrected_over: int
    warnings: Sequence[str]
    recommendations: Sequence[str]

    @property
    def tasks(self) -> Sequence[str]:
        return list(dict.fromkeys(row.task for pairing in self.pairings for row in pairing.rows if row.task))

    @property
    def undecided(self) -> tuple[int, int]:
        """Tests of single tasks without a verdict, and all of them."""
        rows = [row for pairing in self.pairings for row in pairing.rows if row.task]
        return sum(row.verdict in {"open", "undefined"} for row in rows), len(rows)


def comparison_view(
    comparison: comparison_pb2.Comparison, summaries: Sequence[summary_pb2.RunSummary]
) -> ComparisonView:
    """`summaries` are those of the runs, in their order."""
    shown = comparison_shown(comparison)
    runs = _compared_runs(comparison, shown)
    pairings = [Pairing(run, _rows(comparison, run.index)) for run in runs[1:]]
    rows = [row for pairing in pairings for row in pairing.rows]
    return ComparisonView(
        benchmark=comparison.benchmark,
        metric=shown.metric or "",
        runs=runs,
        sentence=verdict_sentence(shown),
        pairings=pairings,
        groups=list(_groups(summaries)),
        scale=Scale.around([0.0, *(end for row in rows for end in (row.value, row.low, row.high))]),
        corrected_over=comparison.corrected_over,
        warnings=list(comparison.warnings),
        recommendations=shown.recommendations,
    )


def _compared_runs(comparison: comparison_pb2.Comparison, shown: ComparisonShown) -> list[ComparedRun]:
    return [
        ComparedRun(
            index=index,
            run_id=run.run_id,
            model=run.model,
            name=shown.models_compared[index],
            score=optional(run, "score"),
            limit=run.limit if run.HasField("limit") else None,
        )
        for index, run in enumerate(comparison.runs)
    ]


def _rows(comparison: comparison_pb2.Comparison, other: int) -> list[DifferenceRow]:
    """Rows of the reference run and another run; the benchmark as a whole comes first."""
    found = [each for each in comparison.differences if {each.first, each.second} == {0, other}]
    return [_row(each) for each in sorted(found, key=lambda each: bool(each.task))]


def _row(each: comparison_pb2.Difference) -> DifferenceRow:
    """Results subtracts the second from the first; here the reference run is subtracted from the other."""
    is_reference_first = each.first == 0
    sign = -1 if is_reference_first else 1
    value = optional(each, "difference")
    ends = sorted(sign * end for end in interval(each) or ())
    gained, lost = each.only_second_right, each.only_first_right
    better, worse = (_SECOND, _FIRST) if is_reference_first else (_FIRST, _SECOND)
    words = {better: "better", worse: "worse", comparison_pb2.VERDICT_NOT_SHOWN: "open"}
    corrected = optional(each, "adjusted_p_value")
    return DifferenceRow(
        task=each.task,
        metric=each.metric,
        value=None if value is None else sign * value,
        means=(optional(each, "first_mean"), optional(each, "second_mean")),
        low=ends[0] if ends else None,
        high=ends[1] if ends else None,
        p_value=optional(each, "p_value") if corrected is None else corrected,
        test=each.test,
        pairs=each.pairs,
        detectable=optional(each, "smallest_detectable"),
        gained=gained if is_reference_first else lost,
        lost=lost if is_reference_first else gained,
        failed=each.first_failed + each.second_failed,
        verdict=words.get(each.verdict, "undefined"),
        remark=each.remark,
    )


def _groups(summaries: Sequence[summary_pb2.RunSummary]) -> Iterable[GroupRow]:
    """Groups of several tasks that every run has, with the figures as the runs have them."""
    of_runs: list[Mapping[str, summary_pb2.GroupSummary]] = [
        {group.group: group for group in summary.groups if len(group.tasks) > 1 and group.metrics}
        for summary in summaries
    ]
    for name, group in of_runs[0].items() if of_runs else ():
        if all(name in groups for groups in of_runs):
            figures = [_figure(groups[name].metrics[0]) for groups in of_runs]
            yield GroupRow(name, group.metrics[0].metric, figures)


def _figure(figure: summary_pb2.MetricFigure) -> tuple[float | None, float | None]:
    ends = interval(figure)
    return optional(figure, "mean"), (ends[1] - ends[0]) / 2 if ends else None


@dataclass(frozen=True, slots=True)
class CompareView:
    """`figures` is None where only the answers can be compared; `fault` is the sentence why.

    `names` are those of the runs, in their order.
    """

    address: CompareAddress
    names: Sequence[str]
    samples: SamplesView
    figures: ComparisonView | None = None
    fault: str = ""
    can_be_forced: bool = False


def verdict_sentence(shown: ComparisonShown) -> tuple[str, str]:
    """A conclusion and its evidence, in points of the metric: percents where that is a share."""
    overall = [each for each in shown.differences if each.is_overall and each.metric == shown.metric]
    lead = lead_of(shown.models_compared, overall)
    if lead is None:
        remark = next((each.remark for each in shown.differences if each.remark), "")
        return "The data allow no verdict", f"({remark})" if remark else ""
    if len(shown.models_compared) == 2 or not lead.tied:
        return _of_the_gap(lead, shown.corrected_over)
    tied = ", ".join(lead.tied)
    what = f"{lead.best} has the highest figure, and cannot be distinguished from {tied}"
    return what, _evidence(lead.gap, lead.best, shown.corrected_over)


def _of_the_gap(lead: Lead, corrected_over: int) -> tuple[str, str]:
    best, next_one, gap = lead.best, lead.runner_up, lead.gap
    value, _ = gap.seen_from(best)
    evidence = _evidence(gap, best, corrected_over)
    if gap.verdict in _BETTER:
        return f"{best} is better than {next_one} by {points(abs(value or 0), gap)} points", evidence
    return f"{best} and {next_one} cannot be distinguished", evidence


def _evidence(gap: DifferenceShown, best: str, corrected_over: int) -> str:
    value, ends = gap.seen_from(best)
    parts = [f"difference {points(value, gap)}" if value is not None and gap.verdict not in _BETTER else ""]
    parts.append(f"95 % from {points(ends[0], gap)} to {points(ends[1], gap)}" if ends else "")
    p_value = gap.p_value if gap.adjusted_p_value is None else gap.adjusted_p_value
    if p_value is not None:
        how = f", Holm-corrected over {corrected_over} tests" if corrected_over > 1 else ""
        parts.append(f"{gap.test}, {p_text(p_value)}{how}")
    return f"({'; '.join(part for part in parts if part)})" if any(parts) else ""


def points(difference: float, of: DifferenceShown) -> str:
    """A difference of two figures as their metric is shown."""
    return text.score(difference, of.metric, of.first_mean, of.second_mean)


def p_text(p_value: float) -> str:
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.3f}"
