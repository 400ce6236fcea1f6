"""The differences between runs: rows for programs, a table in a notebook, lines on a terminal."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from proctor.client.html_table import Cell, Interval, html_table
from proctor.client.text_table import shown, text_table
from proctor.v1 import comparison_pb2
from proctor.wire.enums import word_of

_HEAD = ("models", "task", "metric", "difference", "95 %", "p", "verdict")
_ALL_TASKS = "all tasks"


@dataclass(frozen=True, slots=True)
class RunDifference:
    """First minus second, paired by sample. `p` is corrected over the comparison. None means undefined.

    `depends_on_unparsed`: over the answers that could be read, its side or the verdict is another one.
    """

    first: str
    second: str
    task: str
    metric: str
    difference: float | None
    ci_low: float | None
    ci_high: float | None
    p: float | None
    pairs: int
    verdict: str
    depends_on_unparsed: bool = False


@dataclass(frozen=True, slots=True)
class ComparedRuns:
    """`await client.compare(one, other)`. The last line of a cell shows it as a table with interval plots."""

    comparison: comparison_pb2.Comparison

    @property
    def differences(self) -> list[RunDifference]:
        models = [run.model for run in self.comparison.runs]
        return [_difference(each, models) for each in self.comparison.differences]

    @property
    def title(self) -> str:
        compared = self.comparison
        corrected = f"p corrected over {compared.corrected_over} tests"
        sentence = f"{compared.benchmark}: first minus second, {corrected}."
        return " ".join([sentence, *self._conditions(), *compared.warnings])

    def _conditions(self) -> Iterator[str]:
        """A sentence with all that differs, where the figures are not those of the models alone."""
        named = []
        for one in self.comparison.conditions:
            of_tasks = f" of {', '.join(one.tasks)}" if one.tasks else ""
            named.append(f"{one.name}{of_tasks} {' against '.join(one.values)}")
        if named:
            yield f"Other conditions: {'; '.join(named)}."

    def __str__(self) -> str:
        return text_table(self.title, _HEAD, self._cells())

    def _repr_html_(self) -> str:
        """HTML for Jupyter."""
        plots = (Interval(each.difference, each.ci_low, each.ci_high) for each in self.differences)
        rows: Iterator[Sequence[Cell]] = (
            (*cells, plot) for cells, plot in zip(self._cells(), plots, strict=True)
        )
        return html_table(self.title, (*_HEAD, ""), rows, origin=0.0)

    def _cells(self) -> Iterator[tuple[str, ...]]:
        for each in self.differences:
            yield (
                f"{each.first} − {each.second}",
                each.task or _ALL_TASKS,
                each.metric,
                shown(each.difference),
                f"{shown(each.ci_low)} to {shown(each.ci_high)}" if each.ci_low is not None else "",
                shown(each.p),
                f"{each.verdict}, depends on unparsed answers" if each.depends_on_unparsed else each.verdict,
            )


def _difference(each: comparison_pb2.Difference, models: Sequence[str]) -> RunDifference:
    return RunDifference(
        first=models[each.first],
        second=models[each.second],
        task=each.task,
        metric=each.metric,
        difference=each.difference if each.HasField("difference") else None,
        ci_low=each.ci_low if each.HasField("ci_low") else None,
        ci_high=each.ci_high if each.HasField("ci_high") else None,
        p=each.adjusted_p_value if each.HasField("adjusted_p_value") else None,
        pairs=each.pairs,
        verdict=word_of(comparison_pb2.Verdict, each.verdict).replace("_", " "),
        depends_on_unparsed=each.depends_on_unparsed,
    )
