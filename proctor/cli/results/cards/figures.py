"""The figures of a result card, computed again from the lines of a run's export."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from proctor.wire.result_card import DigestTree, SampleTree

# Sums in another order differ by some 10⁻¹⁵.
_CLOSE = 1e-9
MEAN_OF_ROWS = "mean of rows"


@dataclass(slots=True)
class _Mean:
    """Over samples, of the mean over their rollouts."""

    means: list[float] = field(default_factory=list)
    rollouts: list[float] = field(default_factory=list)

    def close_sample(self) -> None:
        if self.rollouts:
            self.means.append(math.fsum(self.rollouts) / len(self.rollouts))
            self.rollouts.clear()


@dataclass(slots=True)
class _Task:
    metrics: dict[str, _Mean]
    answered: int = 0
    unparsed: int = 0
    failed: int = 0


@dataclass(slots=True)
class ReadLines:
    """What the lines of an export add up to. `tasks` are those of the card."""

    tasks: dict[str, _Task]
    samples: SampleTree = field(default_factory=SampleTree)
    outcomes: DigestTree = field(default_factory=DigestTree)

    @classmethod
    def of(cls, card: Mapping[str, Any], lines: Iterable[bytes]) -> "ReadLines":
        """Raises KeyError, TypeError and ValueError for lines that are no outcomes of the card's tasks."""
        tasks = {
            task["task"]: _Task(
                {name: _Mean() for name, figure in task["metrics"].items() if figure["of"] == MEAN_OF_ROWS}
            )
            for task in card["figures"]["tasks"]
        }
        read = cls(tasks)
        for line in lines:
            read._add(line)
        read._close_samples()
        return read

    def _add(self, line: bytes) -> None:
        self.outcomes.add(line)
        outcome = json.loads(line)
        if self.samples.add(outcome):
            self._close_samples()
        task = self.tasks[outcome["task"]]
        if outcome["status"] == "failed":
            task.failed += 1
            return
        task.answered += 1
        task.unparsed += outcome["status"] == "unparsed"
        for name, mean in task.metrics.items():
            score = outcome["scores"].get(name)
            if isinstance(score, int | float):
                mean.rollouts.append(float(score))

    def _close_samples(self) -> None:
        for task in self.tasks.values():
            for mean in task.metrics.values():
                mean.close_sample()

    def differences(self, card: Mapping[str, Any]) -> Iterator[str]:
        """What the card says otherwise than the lines, a phrase each."""
        for name, tree in (("samples", self.samples.tree), ("outcomes", self.outcomes)):
            if dict(tree.shown()) != card[name]:
                yield f"the {name} of the export are others than those of the card"
        for stated in card["figures"]["tasks"]:
            task = self.tasks[stated["task"]]
            for name in ("answered", "unparsed", "failed"):
                counted = getattr(task, name)
                if counted != stated[name]:
                    yield f"{name} of {stated['task']} is {stated[name]}, and {counted} by the export"
            for metric, mean in task.metrics.items():
                figure, means = stated["metrics"][metric], mean.means
                found = math.fsum(means) / len(means) if means else None
                if not is_same(figure["mean"], found) or figure["n"] != len(means):
                    yield f"{metric} of {stated['task']} is {figure['mean']}, and {found} by the export"


def group_differences(card: Mapping[str, Any]) -> Iterator[str]:
    """Figures of groups that do not follow from those of their tasks."""
    tasks = {task["task"]: task for task in card["figures"]["tasks"]}
    for group in card["figures"]["groups"]:
        for metric, stated in group["metrics"].items():
            of_tasks = [
                tasks[name]["metrics"].get(tasks[name]["main"] if metric == "score" else metric)
                for name in group["tasks"]
            ]
            figures = [figure for figure in of_tasks if figure is not None]
            found = _mean_of(figures, by_size=stated["by_size"])
            if not is_same(stated["mean"], found):
                yield f"{metric} of {group['group']} is {stated['mean']}, and {found} by its tasks"


def _mean_of(figures: list[Mapping[str, Any]], *, by_size: bool) -> float | None:
    if len(figures) == 1:
        mean: float | None = figures[0]["mean"]
        return mean
    if not figures or any(figure["mean"] is None or not figure["n"] for figure in figures):
        return None
    weights = [figure["n"] if by_size else 1 for figure in figures]
    total = math.fsum(figure["mean"] * weight for figure, weight in zip(figures, weights, strict=True))
    return total / sum(weights)


def is_same(stated: float | None, found: float | None) -> bool:
    if stated is None or found is None:
        return stated is found
    return math.isclose(stated, found, rel_tol=_CLOSE, abs_tol=_CLOSE)


def count_recomputed(card: Mapping[str, Any]) -> tuple[int, int]:
    """Figures of tasks that are computed again, and those that are only signed."""
    figures = [figure for task in card["figures"]["tasks"] for figure in task["metrics"].values()]
    again = sum(figure["of"] == MEAN_OF_ROWS for figure in figures)
    return again, len(figures) - again
