"""What a log names and says of itself, as far as it fits a run: its process may have written anything."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from proctor.values.names.suite_name import is_id
from services.scheduler.imports.errors import LogRefused
from services.scheduler.imports.logged_run import LoggedRun, LoggedTask

MAX_NAME_CHARACTERS = 200
# Metrics of a task through each of its filters: of each a figure is computed, compared and listed.
MAX_FIGURES = 200
# Of what a log says of itself, in the environment of the run and beside it.
MAX_WORD_CHARACTERS = 500
MAX_LOG_FIGURES = 1000
MAX_NOTES = 50


def fitting(log_name: str, log: LoggedRun, suite_tasks: Sequence[str]) -> LoggedRun:
    """The log without what is too much of its own figures, words and notes. Raises `LogRefused`.

    `suite_tasks`: of the suite that the log is said to be of; () for none.
    """
    problem = next(_problems(log, suite_tasks), "")
    if problem:
        raise LogRefused(name=log_name, problem=problem)
    left = MAX_LOG_FIGURES
    tasks: list[LoggedTask] = []
    for task in log.tasks:
        figures = dict(list(_in_short(task.figures).items())[:left])
        left -= len(figures)
        tasks.append(replace(task, figures=figures, row_source=task.row_source[:MAX_WORD_CHARACTERS]))
    words = {name[:MAX_NAME_CHARACTERS]: word[:MAX_WORD_CHARACTERS] for name, word in log.environment.items()}
    return replace(log, tasks=tuple(tasks), environment=words, notes=_notes(log.notes))


def _in_short(figures: Mapping[str, float]) -> Mapping[str, float]:
    return {name: value for name, value in figures.items() if _is_name(name)}


def _notes(notes: Sequence[str]) -> tuple[str, ...]:
    kept = [note[:MAX_WORD_CHARACTERS] for note in notes[:MAX_NOTES]]
    return (*kept, *([f"There are {len(notes) - MAX_NOTES:,} more notes."] if len(notes) > MAX_NOTES else []))


def _problems(log: LoggedRun, suite_tasks: Sequence[str]) -> Iterator[str]:
    named = [("tool", log.tool), ("model", log.model), ("benchmark", log.benchmark)]
    for task in log.tasks:
        filters = [str(each["name"]) for each in json.loads(task.filters_json or "[]")]
        named += [("task", task.task), ("version", task.version or "none")]
        named += [("metric", metric.name) for metric in task.metrics]
        named += [("filter", name) for name in filters]
        count = len(task.metrics) * max(len(filters), 1)
        if count > MAX_FIGURES:
            yield f"{task.task:.200} has {count:,} metrics with their filters, more than {MAX_FIGURES}."
    for what, name in named:
        if not _is_name(name):
            yield f"The name of its {what} is no name of 1 to {MAX_NAME_CHARACTERS} characters."
    if is_id(log.benchmark):
        yield f"Its benchmark {log.benchmark} has the name of a run or an upload. Name the suite."
    names = [task.task for task in log.tasks]
    if len(set(names)) < len(names):
        yield "Two of its tasks have the same name."
    if suite_tasks and not {*suite_tasks}.intersection(names):
        listed = ", ".join(names[:5])
        yield f"The suite has none of its tasks ({listed}). Leave the suite out, or name its task."


def _is_name(name: str) -> bool:
    return 0 < len(name) <= MAX_NAME_CHARACTERS and name.isprintable()
