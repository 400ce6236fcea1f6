"""Reads a run folder of HELM: `scenario_state.json`, and `per_instance_stats.json` with the scores."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from proctor.values.outcome import Answer, ChoiceScore
from proctor.values.sample import ChatMessage, Prompt, Target
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
    ORDERED_BELOW,
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
from services.scheduler.imports.logs.unknown_conditions import told_numbers, unknown_conditions

TOOL = "helm"
_STATE = "scenario_state.json"
_MODEL = re.compile(r"[,:]model=[^,]+")
# What HELM counts beside what it scores.
_COUNTS = re.compile(
    r"(num_|training_|inference_|finish_reason_|batch_size|prompt_truncated|max_prob|logprob|predicted_index"
    r"|estimated_|ci_).*"
)
# One request for each reference, which is told apart by its likelihood.
_SEPARATE = "multiple_choice_separate"

# An instance, the number of its training set.
Key = tuple[str, int]


def looks_like_helm(files: LogFiles) -> bool:
    return any(PurePosixPath(name).name == _STATE for name in files.names)


class HelmLog:
    def __init__(self, files: LogFiles, options: ReadOptions, writer: SampleWriter) -> None:
        self._files = files
        self._options = options
        self._writer = writer
        states = [name for name in files.names if PurePosixPath(name).name == _STATE]
        if len(states) > 1:
            raise LogProblem(f"It has {len(states)} runs of HELM. Import the folder of each by itself.")
        self._folder = PurePosixPath(states[0]).parent

    def read(self) -> LoggedRun:
        """Raises `LogProblem`."""
        state = as_object(self._document(_STATE))
        adapter = as_object(state.get("adapter_spec"))
        model = self._options.model or as_text(adapter.get("model"))
        if not model:
            raise LogProblem(f"Its {_STATE} names no model.")
        name = self._options.task or self._name()
        version = self._options.versions.get(name, "")
        scores, metrics = self._scores()
        by_key, perturbed = _by_instance(as_list(state.get("request_states")))
        is_separate = as_text(adapter.get("method")).startswith(_SEPARATE)
        self._writer.begin(name, version)
        for number, (key, requests) in enumerate(by_key.items()):
            row = _row(number, requests, is_separate=is_separate)
            answer = _answer(requests, scores.get(key, {}), is_separate=is_separate)
            self._writer.add(row, [answer])
        count = self._writer.end()
        figures, keys = self._figures(metrics)
        request = _request(adapter)
        output_type = OutputType.MULTIPLE_CHOICE if is_separate else OutputType.GENERATE_UNTIL
        task = LoggedTask(
            task=name,
            version=version,
            output_type=output_type,
            metrics=tuple(logged_metric(metric, is_of_pairs=False) for metric in metrics),
            sample_count=count,
            num_fewshot=as_count(adapter.get("max_train_instances"), below=ORDERED_BELOW),
            row_source=as_text(member(self._document("scenario.json"), "name")),
            request_json=json.dumps(request, sort_keys=True),
            unknown=unknown_conditions(request, is_generated=not is_separate),
            figures=figures,
        )
        notes = [f"{perturbed} requests of perturbed instances were left out."] if perturbed else []
        notes += [] if metrics else ["It has no per_instance_stats.json, so no answer has a score."]
        notes += figure_notes(name, figures, keys, self._writer)
        most = as_count(adapter.get("max_eval_instances"))
        return LoggedRun(
            tool=TOOL,
            model=model if "/" in model else f"{TOOL}/{model}",
            benchmark=self._options.benchmark or name,
            tasks=(task,),
            limit=most if most and most <= count else None,
            environment={"model_deployment": as_text(adapter.get("model_deployment"))},
            notes=tuple(notes),
        )

    def _document(self, name: str) -> object:
        path = str(self._folder / name)
        return self._files.document(path) if self._files.has(path) else None

    def _name(self) -> str:
        """The name of the run without its model."""
        named = as_text(member(self._document("run_spec.json"), "name")) or self._folder.name
        scenario = as_text(member(self._document("scenario.json"), "name"))
        return _MODEL.sub("", named).strip(":,") or scenario or TOOL

    def _scores(self) -> tuple[Mapping[Key, Mapping[str, float]], Sequence[str]]:
        """By instance, and the names of the metrics in the order of the file."""
        found: dict[Key, dict[str, float]] = {}
        metrics: dict[str, None] = {}
        for each in map(as_object, as_list(self._document("per_instance_stats.json"))):
            if each.get("perturbation"):
                continue
            scores = found.setdefault(_key(each.get("instance_id"), each.get("train_trial_index")), {})
            for stat in map(as_object, as_list(each.get("stats"))):
                name, mean = as_text(member(stat, "name", "name")), as_number(stat.get("mean"))
                if mean is not None and name and not _COUNTS.fullmatch(name):
                    scores[name] = mean
            metrics.update(dict.fromkeys(scores))
        return found, list(metrics)

    def _figures(self, metrics: Sequence[str]) -> tuple[Mapping[str, float], Mapping[str, str]]:
        """Those of `stats.json` by split and metric, and the metric of which each is the mean."""
        figures: dict[str, float] = {}
        keys: dict[str, str] = {}
        for stat in map(as_object, as_list(self._document("stats.json"))):
            metric, mean = as_text(member(stat, "name", "name")), as_number(stat.get("mean"))
            if mean is None or metric not in metrics or member(stat, "name", "perturbation"):
                continue
            figure = f"{as_text(member(stat, 'name', 'split'))}/{metric}"
            figures[figure], keys[figure] = mean, metric
        return figures, keys


def _key(instance_id: object, trial: object) -> Key:
    return str(instance_id), as_count(trial)


def _by_instance(states: Sequence[object]) -> tuple[Mapping[Key, list[Mapping[str, object]]], int]:
    """The requests of each instance, and how many were left out because they are of perturbed ones."""
    found: dict[Key, list[Mapping[str, object]]] = {}
    perturbed = 0
    for state in map(as_object, states):
        instance = as_object(state.get("instance"))
        if instance.get("perturbation"):
            perturbed += 1
        elif state.get("request_mode") != "calibration":
            key = _key(instance.get("id"), state.get("train_trial_index"))
            found.setdefault(key, []).append(state)
    return found, perturbed


def _row(number: int, requests: Sequence[Mapping[str, object]], *, is_separate: bool) -> LoggedRow:
    first = requests[0]
    instance = as_object(first.get("instance"))
    references = [as_object(each) for each in as_list(instance.get("references"))]
    texts = [as_text(member(each, "output", "text")) for each in references]
    right = [index for index, each in enumerate(references) if "correct" in as_list(each.get("tags"))]
    prompt = _prompt(as_object(first.get("request")))
    if not is_separate:
        target = Target(texts=tuple(texts[index] for index in right))
        return LoggedRow(number, prompt, target, doc=instance, row_id=str(instance.get("id", ""))[:512])
    target = Target(choice=right[0]) if len(right) == 1 else Target(right_choices=tuple(right))
    asked = Prompt(as_text(member(instance, "input", "text")))
    return LoggedRow(number, asked, target, tuple(texts), instance, str(instance.get("id", ""))[:512])


def _prompt(request: Mapping[str, object]) -> Prompt:
    turns = [as_object(each) for each in as_list(request.get("messages"))]
    if not turns:
        return Prompt(as_text(request.get("prompt")))
    messages = [ChatMessage(as_text(turn.get("role")), as_text(turn.get("content"))) for turn in turns]
    return Prompt(None, tuple(messages))


def _answer(
    requests: Sequence[Mapping[str, object]], scores: Mapping[str, float], *, is_separate: bool
) -> LoggedAnswer:
    results = [as_object(each.get("result")) for each in requests]
    failed = next((each for each in results if each.get("success") is not True), None)
    if failed is not None:
        return LoggedAnswer(None, as_text(failed.get("error"))[:2000] or "The request failed.")
    completions = [as_object(next(iter(as_list(each.get("completions"))), None)) for each in results]
    timing = Timing(sum(as_number(each.get("request_time")) or 0.0 for each in results))
    if is_separate:
        logprobs = [as_number(each.get("logprob")) or 0.0 for each in completions]
        weighed = Answer(choices=tuple(ChoiceScore(each, is_greedy=False) for each in logprobs))
        return LoggedAnswer(weighed, scores=scores, timing=timing)
    text = as_text(completions[0].get("text"))
    reason = as_text(member(completions[0], "finish_reason", "reason"))
    usage = TokenUsage(0, len(as_list(completions[0].get("tokens"))))
    mapped = member(requests[0], "output_mapping", text.strip())
    prediction = mapped if isinstance(mapped, str) else text
    return LoggedAnswer(Answer(text, reason), "", scores, prediction, usage=usage, timing=timing)


def _request(adapter: Mapping[str, object]) -> dict[str, object]:
    request = told_numbers(adapter, {name: name for name in ("temperature", "max_tokens")})
    request["stop"] = [as_text(stop) for stop in as_list(adapter.get("stop_sequences"))]
    return request
