"""Reads a job folder of Harbor, `result.json` of each trial; or `results.json` of Terminal-Bench."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import PurePosixPath

from proctor.values.outcome import Answer
from proctor.values.sample import Prompt, Target
from proctor.values.scoring import OutputType
from proctor.values.usage import Timing, TokenUsage
from services.scheduler.imports.logged_run import (
    LoggedAnswer,
    LoggedRun,
    LoggedTask,
    ReadOptions,
    logged_metric,
)
from services.scheduler.imports.logs.document import (
    LogProblem,
    as_count,
    as_list,
    as_number,
    as_object,
    as_text,
    member,
)
from services.scheduler.imports.logs.figure_notes import figure_notes
from services.scheduler.imports.logs.log_files import LogFiles
from services.scheduler.imports.logs.sample_writer import LoggedRow, SampleWriter
from services.scheduler.imports.logs.unknown_conditions import LIMIT, unknown_conditions

TOOL = "harbor"
REWARD = "reward"
_RESULT, _RESULTS = "result.json", "results.json"

Trial = Mapping[str, object]


def is_trial(document: object) -> bool:
    found = as_object(document)
    return "task_name" in found and ("verifier_result" in found or "exception_info" in found)


def looks_like_harbor(files: LogFiles) -> bool:
    for name in files.names:
        base = PurePosixPath(name).name
        if base == _RESULT and is_trial(files.document(name)):
            return True
        if base.endswith(_RESULTS) and _old_trials(files.document(name)):
            return True
    return False


def _old_trials(document: object) -> Sequence[Trial]:
    found = [as_object(each) for each in as_list(member(document, "results"))]
    return [each for each in found if "is_resolved" in each and "task_id" in each]


class HarborJob:
    def __init__(self, files: LogFiles, options: ReadOptions, writer: SampleWriter) -> None:
        self._files = files
        self._options = options
        self._writer = writer
        # Of documents of Terminal-Bench.
        self._accuracies: list[float] = []

    def read(self) -> LoggedRun:
        """Raises `LogProblem`."""
        by_task: dict[str, list[Trial]] = {}
        agents: dict[str, None] = {}
        models: dict[str, None] = {}
        sources: dict[str, None] = {}
        for trial in self._trials():
            by_task.setdefault(_task(trial), []).append(trial)
            agents.setdefault(_agent(trial))
            models.setdefault(_model(trial))
            sources.setdefault(as_text(trial.get("source")))
        if len(models) > 1 or len(agents) > 1:
            named = ", ".join(f"{agent}" for agent in [*models, *agents] if agent)
            raise LogProblem(f"It has trials of several models or agents ({named}). Import each by itself.")
        model = self._options.model or next(iter(models))
        if not model:
            raise LogProblem("Its trials name no model. Name it: provider/name.")
        name = self._options.benchmark or _benchmark(sources, self._options.name)
        task = self._options.task or "tasks"
        self._writer.begin(task, self._options.versions.get(task, ""))
        for number, trials in enumerate(by_task.values()):
            self._writer.add(_row(number, trials[0]), [_answer(trial) for trial in trials])
        agent = next(iter(agents))
        request: dict[str, object] = {"prompt_form": "chat", **({"agent": agent} if agent else {})}
        unknown = unknown_conditions(request, is_generated=True)
        count = self._writer.end()
        figures = {"accuracy": self._accuracies[0]} if len(self._accuracies) == 1 else {}
        # There a trial without a verdict counts as one that failed.
        notes = tuple(figure_notes(task, figures, dict.fromkeys(figures, REWARD), self._writer))
        logged = LoggedTask(
            task=task,
            version=self._options.versions.get(task, ""),
            output_type=OutputType.GENERATE_UNTIL,
            metrics=(logged_metric(REWARD, is_of_pairs=False),),
            sample_count=count,
            row_source=next(iter(sources)),
            request_json=json.dumps(request, sort_keys=True),
            unknown=(*unknown, LIMIT),
            figures=figures,
        )
        return LoggedRun(
            tool=TOOL,
            model=model,
            benchmark=name,
            tasks=(logged,),
            environment={"agent": agent},
            notes=notes,
        )

    def _trials(self) -> Iterator[Trial]:
        found = False
        for name in self._files.names:
            base = PurePosixPath(name).name
            if base != _RESULT and not base.endswith(_RESULTS):
                continue
            document = self._files.document(name)
            trials = [as_object(document)] if is_trial(document) else _old_trials(document)
            if (accuracy := as_number(member(document, "accuracy"))) is not None:
                self._accuracies.append(accuracy)
            # The folder of a trial may have a file of the same name for a part of it.
            found = found or bool(trials)
            yield from trials
        if not found:
            raise LogProblem("It has no trial with a result.")


def _task(trial: Trial) -> str:
    return as_text(trial.get("task_name")) or as_text(trial.get("task_id"))


def _agent(trial: Trial) -> str:
    words = (member(trial, "agent_info", "name"), member(trial, "agent_info", "version"))
    return " ".join(as_text(word) for word in words if as_text(word))


def _model(trial: Trial) -> str:
    name = as_text(member(trial, "agent_info", "model_info", "name"))
    provider = as_text(member(trial, "agent_info", "model_info", "provider"))
    configured = as_text(member(trial, "config", "agent", "model_name"))
    if configured and "/" in configured:
        return configured
    return f"{provider or TOOL}/{name or configured}" if name or configured else ""


def _benchmark(sources: Mapping[str, None], name: str) -> str:
    named = [source for source in sources if source]
    return named[0] if len(named) == 1 else name.removesuffix(".zip") or TOOL


def _row(number: int, trial: Trial) -> LoggedRow:
    """A task by its name and the digest of its files; the old form has the instruction itself."""
    checksum = as_text(trial.get("task_checksum"))
    asked = as_text(trial.get("instruction")) or " ".join(word for word in (_task(trial), checksum) if word)
    doc = {"task": _task(trial), "task_checksum": checksum, "source": trial.get("source")}
    return LoggedRow(number, Prompt(asked), Target(), doc=doc, row_id=_task(trial)[:512])


def _answer(trial: Trial) -> LoggedAnswer:
    result = as_object(trial.get("agent_result"))
    usage = TokenUsage(
        as_count(result.get("n_input_tokens")) or as_count(trial.get("total_input_tokens")),
        as_count(result.get("n_output_tokens")) or as_count(trial.get("total_output_tokens")),
        as_count(result.get("n_cache_tokens")),
    )
    timing = Timing(_seconds(trial))
    reward = _reward(trial)
    exception = as_object(trial.get("exception_info"))
    if reward is None:
        kind, message = as_text(exception.get("exception_type")), as_text(exception.get("exception_message"))
        failure = f"{kind}: {message}".strip(": ")[:2000] or "The verifier gave no reward."
        return LoggedAnswer(None, failure, usage=usage, timing=timing)
    ended = as_text(exception.get("exception_type")) or as_text(trial.get("failure_mode"))
    answer = Answer("", ended.removeprefix("unset"))
    return LoggedAnswer(answer, "", {REWARD: reward}, f"{reward:g}", usage=usage, timing=timing)


def _reward(trial: Trial) -> float | None:
    """The reward, or the mean of all where a verifier gives several; older jobs have one number."""
    if isinstance(resolved := trial.get("is_resolved"), bool):
        return float(resolved)
    rewards = member(trial, "verifier_result", "rewards")
    numbers = {name: as_number(value) for name, value in as_object(rewards).items()}
    known = {name: value for name, value in numbers.items() if value is not None}
    if REWARD in known:
        return known[REWARD]
    return sum(known.values()) / len(known) if known else as_number(member(trial, "verifier_result", REWARD))


def _seconds(trial: Trial) -> float:
    begun, ended = as_text(trial.get("started_at")), as_text(trial.get("finished_at"))
    try:
        seconds = (datetime.fromisoformat(ended) - datetime.fromisoformat(begun)).total_seconds()
    except (ValueError, TypeError):
        return 0.0
    return max(seconds, 0.0)
