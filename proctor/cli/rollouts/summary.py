"""Sums up rollouts of each task and model for people and programs: passes, scores, failures, suspicions.

An evaluation has the figures of each model, with their intervals, its rubrics and how agents ended, too.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from proctor.cli.render.table import numbers, table, texts
from proctor.cli.render.terminal import Terminal, say
from proctor.cli.render.words import JsonValue, document, mean_and_half_width, priced
from proctor.cli.rollouts.folders import OrderedRun, RolloutFolders
from proctor.v1 import summary_pb2
from proctor.wire.report import figures_of

_OVERALL = "overall"
_SAME = "Tests judged in the agent's own sandbox (verification = same), which is easier to cheat."


@dataclass(frozen=True, slots=True)
class TaskSummary:
    """Answered rollouts of a task by a model; failures are in none of the other figures.

    The mean of several tasks and models is that of their means.
    """

    task_id: str
    model: str
    answered: int
    passed: int
    mean_score: float | None
    failed: int
    suspicious: int
    mean_score_without_suspicious: float | None


@dataclass(frozen=True, slots=True)
class RubricSummary:
    """A rubric over the rollouts of a task by a model that were judged by it."""

    task_id: str
    model: str
    rubric: str
    rollouts: int
    mean_score: float
    tests_passed: int
    tests: int


def show_summary(terminal: Terminal, folders: RolloutFolders) -> None:
    lines = list(_lines(folders))
    if terminal.is_json:
        terminal.emit(_document(folders, lines))
        return
    _print_tasks(terminal, lines, is_same=_is_same(folders))
    say(terminal.out, f"Results: {folders.folder}", style="dim")


def show_evaluation(
    terminal: Terminal, folders: RolloutFolders, summaries: Sequence[summary_pb2.RunSummary]
) -> None:
    """`summaries` are those of the runs, in their order."""
    lines, rubrics = list(_lines(folders)), list(_rubrics(folders))
    ends = [_ends(folders, ordered) for ordered in folders.runs]
    if terminal.is_json:
        of_rubrics: list[JsonValue] = [asdict(rubric) for rubric in rubrics]
        models: list[JsonValue] = [
            {"model": ordered.model, "run_id": ordered.run_id, "ended": dict(ended), **_figures(summary)}
            for ordered, ended, summary in zip(folders.runs, ends, summaries, strict=True)
        ]
        terminal.emit({**_document(folders, lines), "models": models, "rubrics": of_rubrics})
        return
    _print_tasks(terminal, lines, is_same=_is_same(folders))
    _print_models(terminal, folders, summaries, ends)
    if rubrics:
        _print_rubrics(terminal, rubrics)
    say(terminal.out, f"Results: {folders.folder}", style="dim")


def _document(folders: RolloutFolders, lines: Sequence[TaskSummary]) -> dict[str, JsonValue]:
    rows: list[JsonValue] = [asdict(line) for line in lines]
    return {"name": folders.name, "stamp": folders.stamp, "tasks": rows, _OVERALL: asdict(_overall(lines))}


def _figures(summary: summary_pb2.RunSummary) -> dict[str, JsonValue]:
    return {
        "figures": [document(figure) for figure in figures_of(summary)],
        "tokens": summary.usage.prompt_tokens + summary.usage.completion_tokens,
        "cost": summary.cost if summary.HasField("cost") else None,
        "currency": summary.price.currency,
    }


def _print_tasks(terminal: Terminal, lines: Sequence[TaskSummary], *, is_same: bool) -> None:
    columns = texts("task", "model", "answered", "passed", "mean score", "failed")
    shown = [*lines, *([_overall(lines)] if len(lines) > 1 else [])]
    cells = (
        (
            each.task_id,
            each.model,
            str(each.answered),
            str(each.passed),
            _score(each.mean_score),
            str(each.failed),
        )
        for each in shown
    )
    terminal.out.print(table(terminal.out, columns, cells))
    for each in shown:
        if each.suspicious:
            without = _score(each.mean_score_without_suspicious) or "none"
            sentence = f"{each.suspicious} of {each.answered} suspicious: score without them {without}"
            where = f"{each.task_id} by {each.model}" if each.model else each.task_id
            say(terminal.out, f"{where}: {sentence}", style="yellow")
    if is_same:
        say(terminal.out, _SAME, style="yellow")


def _print_models(
    terminal: Terminal,
    folders: RolloutFolders,
    summaries: Sequence[summary_pb2.RunSummary],
    ends: Sequence[Counter[str]],
) -> None:
    """A line for each figure of a run: its metric, mean and interval; then what it took and how it ended."""
    columns = (*texts("model", "metric"), *numbers("mean ± 95 %", "n"))
    cells = [
        (ordered.model, figure.metric, mean_and_half_width(figure), str(figure.n))
        for ordered, summary in zip(folders.runs, summaries, strict=True)
        for figure in figures_of(summary)
    ]
    if cells:
        terminal.out.print(table(terminal.out, columns, cells))
    for ordered, summary, ended in zip(folders.runs, summaries, ends, strict=True):
        tokens = summary.usage.prompt_tokens + summary.usage.completion_tokens
        cost = priced(summary.cost, summary.price) if summary.HasField("cost") else "no price known"
        reasons = ", ".join(f"{reason.replace('_', ' ')} {count}" for reason, count in ended.most_common())
        say(terminal.out, f"{ordered.model}: {tokens:,} tokens, {cost}; ended: {reasons or 'none yet'}")


def _print_rubrics(terminal: Terminal, rubrics: Sequence[RubricSummary]) -> None:
    columns = (*texts("task", "model", "rubric"), *numbers("mean score", "tests passed", "rollouts"))
    cells = (
        (
            each.task_id,
            each.model,
            each.rubric,
            _score(each.mean_score),
            f"{each.tests_passed}/{each.tests}",
            str(each.rollouts),
        )
        for each in rubrics
    )
    terminal.out.print(table(terminal.out, columns, cells))


def _is_same(folders: RolloutFolders) -> bool:
    return any(result.get("verification") == "same" for result in folders.results.values())


def _score(mean: float | None) -> str:
    return "" if mean is None else f"{mean:.3f}"


def _found(folders: RolloutFolders, ordered: OrderedRun, index: int) -> list[dict[str, Any]]:
    """The rollouts of a task that are there."""
    numbers_of = [ordered.number(index, rollout) for rollout in range(ordered.rollouts[index])]
    return [folders.results[number] for number in numbers_of if number in folders.results]


def _lines(folders: RolloutFolders) -> Iterator[TaskSummary]:
    for ordered in folders.runs:
        for index, task_id in enumerate(ordered.task_ids):
            if not ordered.rollouts[index]:
                continue
            found = _found(folders, ordered, index)
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


def _overall(lines: Sequence[TaskSummary]) -> TaskSummary:
    means = [line.mean_score for line in lines if line.mean_score is not None]
    sound = [line.mean_score_without_suspicious for line in lines]
    return TaskSummary(
        task_id=_OVERALL,
        model="",
        answered=sum(line.answered for line in lines),
        passed=sum(line.passed for line in lines),
        mean_score=_mean(means),
        failed=sum(line.failed for line in lines),
        suspicious=sum(line.suspicious for line in lines),
        mean_score_without_suspicious=_mean([mean for mean in sound if mean is not None]),
    )


def _ends(folders: RolloutFolders, ordered: OrderedRun) -> Counter[str]:
    """How many agents ended for each reason; a rollout without a score is a failure."""
    found = [result for index in range(len(ordered.task_ids)) for result in _found(folders, ordered, index)]
    return Counter(result.get("ended") or "failed" for result in found)


def _rubrics(folders: RolloutFolders) -> Iterator[RubricSummary]:
    for ordered in folders.runs:
        for index, task_id in enumerate(ordered.task_ids):
            judged: dict[str, list[Mapping[str, Any]]] = {}
            for result in _found(folders, ordered, index):
                for name, rubric in _rubrics_of(Path(result["run_dir"])).items():
                    judged.setdefault(name, []).append(rubric)
            for name, rubrics in judged.items():
                yield RubricSummary(
                    task_id=task_id,
                    model=ordered.model,
                    rubric=name,
                    rollouts=len(rubrics),
                    mean_score=sum(rubric["score"] or 0.0 for rubric in rubrics) / len(rubrics),
                    tests_passed=sum(rubric["tests_passed"] for rubric in rubrics),
                    tests=sum(rubric["test_count"] for rubric in rubrics),
                )


def _rubrics_of(folder: Path) -> Mapping[str, Mapping[str, Any]]:
    try:
        text = (folder / "evaluation_results.json").read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    rubrics: Mapping[str, Mapping[str, Any]] = json.loads(text)["evaluation"]["rubrics"]
    return rubrics


def _mean(scores: Sequence[float]) -> float | None:
    return sum(scores) / len(scores) if scores else None
