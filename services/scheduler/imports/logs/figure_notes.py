"""Says where a log's own figures are not those of its samples, a sentence each."""

from collections.abc import Iterator, Mapping, Sequence

from proctor.values.metrics.names import unit_of
from services.scheduler.imports.logged_run import LoggedScore
from services.scheduler.imports.logs.sample_writer import SampleWriter

# A figure of the log and the mean of its samples differ by no more, but for rounding.
_CLOSE = 1e-6
# Of a binary F1, as in scikit-learn.
_POSITIVE = 1.0


def figure_notes(
    task: str, figures: Mapping[str, float], keys: Mapping[str, str], writer: SampleWriter
) -> Iterator[str]:
    """`keys`: the metric whose mean a figure should be, for those that are means."""
    for name, key in keys.items():
        value, mean = figures[name], writer.means.get(key)
        if mean is None:
            yield f"{name} of {task} is {value:g} in the log, which has no score of it."
        elif abs(mean - value) > _CLOSE:
            yield f"{name} of {task} is {value:g} in the log; the mean of its samples is {mean:g}."
    for key, mean in writer.means.items():
        unit = unit_of(key)
        if unit and unit.low is not None and unit.high is not None and not unit.low <= mean <= unit.high:
            yield f"{key} of {task} is {mean:g}, where {unit.low:g} to {unit.high:g} is usual."


def f1_notes(task: str, name: str, value: float, scores: Sequence[LoggedScore | None]) -> Iterator[str]:
    """A log has the pairs of an F1, and not how it is averaged over labels."""
    pairs = [score for score in scores if isinstance(score, tuple)]
    found = sum((first == _POSITIVE) + (second == _POSITIVE) for first, second in pairs)
    right = sum(first == second == _POSITIVE for first, second in pairs)
    binary = 2 * right / found if found else 0.0
    if abs(binary - value) > _CLOSE:
        yield f"{name} of {task} is {value:g} in the log; what is shown, the F1 of label 1, is {binary:g}."
