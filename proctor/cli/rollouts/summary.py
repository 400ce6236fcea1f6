"""Sums up rollouts of each task and model for people and programs: passes, scores, failures, suspicions."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from proctor.cli.render.table import table, texts
from proctor.cli.render.terminal import Terminal, say
from proctor.cli.render.words import JsonValue
from proctor.cli.rollouts.folders import RolloutFolders


@dataclass(frozen=True, slots=True)
class TaskSummary:
    """Answered rollouts of a task by a model; failures are in none of the other figures."""

    task_id: str
    model: str
    answered: int
    passed: int
    mean_score: float | None
    failed: int
    suspicious: int
    mean_score_without_suspicious: float | None


def show_summary(terminal: Terminal, folders: RolloutFolders) -> None:
    lines = list(_lines(folders))
    if terminal.is_json:
        rows: list[JsonValue] = [asdict(line) for line in lines]
        terminal.emit({"name": folders.name, "stamp": folders.stamp, "tasks": rows})
        return
    columns = texts("task", "model", "answered", "passed", "mean score", "failed")
    cells = (
        (
            each.task_id,
            each.model,
            str(each.answered),
            str(each.passed),
            _score(each.mean_score),
            str(each.failed),
        )
        for each in lines
    )
    terminal.out.print(table(terminal.out, columns, cells))
    for each in lines:
        if each.suspicious:
            without = _score(each.mean_score_without_suspicious) or "none"
            sentence = f"{each.suspicious} of {each.answered} suspicious: score without them {without}"
            say(terminal.out, f"{each.task_id} by {each.model}: {sentence}", style="yellow")
    say(terminal.out, f"Results: {folders.folder}", style="dim")


def _score(mean: float | None) -> str:
    return "" if mean is None else f"{mean:.3f}"


def _lines(folders: RolloutFolders) -> Iterator[TaskSummary]:
    for ordered in folders.runs:
        for index, task_id in enumerate(ordered.task_ids):
            numbers = [ordered.number(index, rollout) for rollout in range(ordered.rollouts)]
            found = [folders.results[number] for number in numbers if number in folders.results]
            answered = [result for result in found if result["score"] is not None]
            sound = [result["score"] for result in answered if not result.get("suspicions")]
            scores = [result["score"] for result in answered]
            yield TaskSummary(
                task_id=task_id,
                model=ordered.model,
                answered=len(scores),
                passed=sum(score >= 1.0 for score in scores),
                mean_score=_mean(scores),
                failed=len(found) - len(scores),
                suspicious=len(scores) - len(sound),
                mean_score_without_suspicious=_mean(sound),
            )


def _mean(scores: Sequence[float]) -> float | None:
    return sum(scores) / len(scores) if scores else None
