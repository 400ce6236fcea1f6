"""Views of a comparison: a sentence, and differences from the reference run on one scale."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from proctor.v1 import comparison_pb2, summary_pb2
from proctor.values.comparison import Verdict
from services.gateway.api.comparisons.conclusions import DEPENDS_ON_UNPARSED, DifferenceShown, Lead, lead_of
from services.gateway.api.comparisons.notes import ComparisonNotes, NoiseFloorShown
from services.gateway.api.comparisons.routes import (
    ComparedJob,
    ComparisonShown,
    DifferingConditionShown,
    compared_job,
    comparison_shown,
    difference_shown,
)
from services.gateway.http.presentation import present
from services.gateway.pages import text
from services.gateway.pages.compare.address import CompareAddress
from services.gateway.pages.compare.benchmarks import ComparedBenchmark
from services.gateway.pages.compare.samples import SamplesView
from services.gateway.pages.interval_plot import Scale
from services.gateway.pages.rows.figure import Figure

_BETTER = frozenset({Verdict.FIRST_BETTER, Verdict.SECOND_BETTER})


class ComparedRun(ComparedJob):
    """A run that is compared. `name` is its own among the runs of the page; `full_model` has the provider."""

    index: int
    name: str
    full_model: str


class DifferenceRow(DifferenceShown):
    """How much the other run, by its name, is above the reference run: on a task or on all."""

    other: str

    @property
    def value(self) -> float | None:
        return self.seen_from(self.other)[0]

    @property
    def ends(self) -> tuple[float, float] | None:
        """Those of the interval of `value`."""
        return self.seen_from(self.other)[1]

    @property
    def value_if_parsed(self) -> float | None:
        value = self.difference_if_parsed
        return value if value is None or self.other == self.first else -value

    @property
    def means(self) -> tuple[float | None, float | None]:
        """Those of both runs."""
        return self.first_mean, self.second_mean

    @property
    def shown_p_value(self) -> float | None:
        return self.p_value if self.adjusted_p_value is None else self.adjusted_p_value

    @property
    def gained(self) -> int:
        return self.only_first_right if self.other == self.first else self.only_second_right

    @property
    def lost(self) -> int:
        return self.only_second_right if self.other == self.first else self.only_first_right

    @property
    def failed(self) -> int:
        return self.first_failed + self.second_failed

    @property
    def css_class(self) -> str:
        """That of its row."""
        if self.verdict in _BETTER:
            is_better = (self.verdict == Verdict.FIRST_BETTER) == (self.other == self.first)
            return "better" if is_better else "worse"
        return "open" if self.verdict == Verdict.NOT_SHOWN else "undefined"

    @property
    def is_uncorrected(self) -> bool:
        """The interval excludes zero, and the corrected test does not: bare, that looks like a fault."""
        if self.verdict != Verdict.NOT_SHOWN or self.ends is None:
            return False
        low, high = self.ends
        return low > 0 or high < 0


@dataclass(frozen=True, slots=True)
class Pairing:
    """The reference run and another run."""

    other: ComparedRun
    rows: Sequence[DifferenceRow]


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group of tasks with the figures of the runs, in their order."""

    name: str
    figures: Sequence[Figure]


@dataclass(frozen=True, slots=True)
class ComparisonView:
    """A comparison, as far as figures go."""

    benchmark: str
    metric: str
    runs: Sequence[ComparedRun]
    sentence: tuple[str, str]
    spread: tuple[str, str] | None
    pairings: Sequence[Pairing]
    groups: Sequence[GroupRow]
    scale: Scale
    corrected_over: int
    conditions: Sequence[DifferingConditionShown]
    warnings: Sequence[str]
    recommendations: Sequence[str]
    noise_floors: Sequence[NoiseFloorShown]
    judged_differences: Sequence[str]

    @property
    def tasks(self) -> Sequence[str]:
        return list(dict.fromkeys(row.task for pairing in self.pairings for row in pairing.rows if row.task))

    @property
    def undecided(self) -> tuple[int, int]:
        """Tests of single tasks without a verdict, and all of them."""
        rows = [row for pairing in self.pairings for row in pairing.rows if row.task]
        return sum(row.verdict not in _BETTER for row in rows), len(rows)


def comparison_view(
    comparison: comparison_pb2.Comparison,
    summaries: Sequence[summary_pb2.RunSummary],
    notes: ComparisonNotes = ComparisonNotes(),  # noqa: B008  # it is frozen
) -> ComparisonView:
    """`summaries` are those of the runs, in their order."""
    shown = comparison_shown(comparison)
    runs = _compared_runs(comparison, shown)
    pairings = [Pairing(run, _rows(comparison, runs, run)) for run in runs[1:]]
    rows = [row for pairing in pairings for row in pairing.rows]
    overall = [each for each in shown.differences if each.is_overall and each.metric == shown.metric]
    lead = lead_of(shown.models_compared, overall)
    return ComparisonView(
        benchmark=comparison.benchmark,
        metric=shown.metric or "",
        runs=runs,
        sentence=verdict_sentence(shown, lead),
        spread=spread_sentence(shown, lead),
        pairings=pairings,
        groups=list(_groups(summaries)),
        scale=Scale.around([0.0, *(end for row in rows for end in (row.value, *(row.ends or ())))]),
        corrected_over=comparison.corrected_over,
        conditions=shown.conditions,
        warnings=[*comparison.warnings, *notes.judge_warnings],
        recommendations=shown.recommendations,
        noise_floors=notes.noise_floors,
        judged_differences=notes.judged_differences,
    )


def _compared_runs(comparison: comparison_pb2.Comparison, shown: ComparisonShown) -> list[ComparedRun]:
    return [
        compared_job(ComparedRun, run, index=index, name=name, full_model=run.model)
        for index, (run, name) in enumerate(zip(comparison.runs, shown.models_compared, strict=True))
    ]


def _rows(
    comparison: comparison_pb2.Comparison, runs: Sequence[ComparedRun], other: ComparedRun
) -> list[DifferenceRow]:
    """Rows of the reference run and another run; the benchmark as a whole comes first."""
    found = [each for each in comparison.differences if {each.first, each.second} == {0, other.index}]
    names = [run.name for run in runs]
    rows = [difference_shown(DifferenceRow, each, names, other=other.name) for each in found]
    return sorted(rows, key=lambda row: not row.is_overall)


def _groups(summaries: Sequence[summary_pb2.RunSummary]) -> Iterable[GroupRow]:
    """Groups of several tasks that every run has, with the figures as the runs have them."""
    of_runs: list[Mapping[str, summary_pb2.GroupSummary]] = [
        {group.group: group for group in summary.groups if len(group.tasks) > 1 and group.metrics}
        for summary in summaries
    ]
    for name in of_runs[0] if of_runs else ():
        if all(name in groups for groups in of_runs):
            figures = [present(Figure, groups[name].metrics[0]) for groups in of_runs]
            yield GroupRow(name, figures)


@dataclass(frozen=True, slots=True)
class CompareView:
    """`figures` is None where only the answers can be compared; `fault` is the sentence why.

    `names` are those of the runs, in their order.
    """

    address: CompareAddress
    names: Sequence[str]
    samples: SamplesView
    benchmarks: Sequence[ComparedBenchmark] = ()
    figures: ComparisonView | None = None
    fault: str = ""
    can_be_forced: bool = False

    @property
    def others_link(self) -> str:
        """The page that offers others to compare with the first."""
        form = self.address
        if self.benchmarks:
            return self.benchmarks[0].first_link
        return form.link(runs=form.runs[:1], models=form.models[:1], task="", show="", against=1)


def verdict_sentence(shown: ComparisonShown, lead: Lead | None) -> tuple[str, str]:
    """A conclusion and its evidence, in points of the metric: percents where that is a share."""
    if lead is None:
        remark = next((each.remark for each in shown.differences if each.remark), "")
        return "The data allow no verdict", f"({remark})" if remark else ""
    if len(shown.models_compared) == 2 or not lead.tied:
        return _of_the_gap(lead.best, lead.runner_up, lead.gap, shown.corrected_over)
    tied = ", ".join(lead.tied)
    extreme = "lowest" if lead.gap.less_is_better else "highest"
    what = f"{lead.best} has the {extreme} figure, and cannot be distinguished from {tied}"
    return what, _evidence(lead.gap, lead.best, shown.corrected_over)


def spread_sentence(shown: ComparisonShown, lead: Lead | None) -> tuple[str, str] | None:
    """The same of the best and the worst of three or more: the reference run may be neither."""
    if lead is None or lead.spread is None or lead.worst == lead.runner_up:
        return None
    return _of_the_gap(lead.best, lead.worst, lead.spread, shown.corrected_over)


def _of_the_gap(best: str, other: str, gap: DifferenceShown, corrected_over: int) -> tuple[str, str]:
    value, _ = gap.seen_from(best)
    evidence = _evidence(gap, best, corrected_over)
    if gap.verdict in _BETTER:
        return f"{best} is better than {other} by {points(abs(value or 0), gap)} points", evidence
    return f"{best} and {other} cannot be distinguished", evidence


def _evidence(gap: DifferenceShown, best: str, corrected_over: int) -> str:
    is_shown = gap.verdict in _BETTER
    value, ends = gap.advantage_of(best) if is_shown else gap.seen_from(best)
    parts = [f"difference {points(value, gap)}" if value is not None and not is_shown else ""]
    parts.append(f"95 % from {points(ends[0], gap)} to {points(ends[1], gap)}" if ends else "")
    p_value = gap.p_value if gap.adjusted_p_value is None else gap.adjusted_p_value
    if p_value is not None:
        how = f", Holm-corrected over {corrected_over} tests" if corrected_over > 1 else ""
        parts.append(f"{gap.test}, {p_text(p_value)}{how}")
    parts.append(DEPENDS_ON_UNPARSED if gap.depends_on_unparsed else "")
    return f"({'; '.join(part for part in parts if part)})" if any(parts) else ""


def points(difference: float, of: DifferenceShown) -> str:
    """A difference of two figures as their metric is shown."""
    return text.score(difference, of.metric, of.first_mean, of.second_mean)


def p_text(p_value: float) -> str:
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.3f}"
