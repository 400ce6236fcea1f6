"""Reads what lm-evaluation-harness logs: `results_*.json`, and `samples_*.jsonl` of each task.

Releases before 0.4.3 write the samples of a task as one list, and names without a date; scripts that call it
keep results and samples in one document.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from proctor.values.scoring import OutputType
from services.scheduler.imports.logged_run import (
    LoggedRun,
    LoggedScore,
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
    parsed,
)
from services.scheduler.imports.logs.figure_notes import f1_notes, figure_notes
from services.scheduler.imports.logs.harness_samples import (
    NO_FILTER,
    SampleLine,
    answers_of,
    filters_json,
    output_type_of,
    row_of,
    sample_line,
)
from services.scheduler.imports.logs.log_files import LogFiles
from services.scheduler.imports.logs.sample_writer import SampleWriter
from services.scheduler.imports.logs.unknown_conditions import LIMIT, SHOTS, told_numbers, unknown_conditions

TOOL = "lm-eval"
_SAMPLES = re.compile(r"samples_(?P<task>.+?)(_\d{4}-\d\d-\d\dT[\d.:-]+)?\.jsonl?")
_RESULTS = re.compile(r"results.*\.json")
# Names of parameters in its arguments, and in requests.
_GENERATION = {"temperature": "temperature", "top_p": "top_p", "top_k": "top_k", "max_gen_toks": "max_tokens"}
# A figure of the log and the mean of its samples differ by no more, but for rounding.
_CLOSE = 1e-6


@dataclass(slots=True)
class _Read:
    """What the first look at the lines of a task finds: whether metrics have pairs, scores by document."""

    filters: dict[str, None] = field(default_factory=dict)
    metrics: dict[str, bool] = field(default_factory=dict)
    scores: dict[tuple[int, int], dict[tuple[str, str], LoggedScore]] = field(default_factory=dict)
    first: SampleLine | None = None

    def add(self, line: SampleLine, key: tuple[int, int]) -> None:
        self.first = self.first or line
        self.filters.setdefault(line.filter)
        for metric, score in line.scores.items():
            self.metrics[metric] = self.metrics.get(metric, True) and isinstance(score, tuple)
        of_document = self.scores.setdefault(key, {})
        of_document.update({(metric, line.filter): score for metric, score in line.scores.items()})

    def key(self, metric: str, name: str) -> str:
        """The name of a figure: with its filter where the task has several."""
        return f"{metric},{name}" if len(self.filters) > 1 else metric


def looks_like_harness(files: LogFiles) -> bool:
    names = [PurePosixPath(name).name for name in files.names]
    return any(_SAMPLES.fullmatch(name) for name in names)


class HarnessLog:
    def __init__(self, files: LogFiles, options: ReadOptions, writer: SampleWriter) -> None:
        self._files = files
        self._options = options
        self._writer = writer
        self._notes: list[str] = []
        # Of each task, by the log's own names of figures.
        self._means: dict[str, Mapping[str, float]] = {}

    def read(self) -> LoggedRun:
        """Raises `LogProblem`."""
        results_name = self._results_name()
        results = as_object(self._files.document(results_name)) if results_name else {}
        sources = self._sources(results, results_name)
        if not sources:
            raise LogProblem("It has no samples; lm-eval writes them with --log_samples.")
        tasks = tuple(self._task(name, source, results) for name, source in sorted(sources.items()))
        model = self._options.model or _model(results)
        if not model:
            raise LogProblem("It does not tell its model. Name it: provider/name.")
        benchmark = _benchmark(results, tasks)
        self._note_group(benchmark, results, tasks)
        return LoggedRun(
            tool=TOOL,
            tool_version=as_text(results.get("lm_eval_version")),
            model=model,
            benchmark=self._options.benchmark or benchmark,
            tasks=tasks,
            limit=_limit(results, tasks),
            environment=_environment(results),
            notes=tuple(self._notes),
        )

    def _results_name(self) -> str:
        found = [name for name in self._files.names if _RESULTS.fullmatch(PurePosixPath(name).name)]
        if len(found) > 1:
            listed = ", ".join(found[:5])
            raise LogProblem(f"It has the results of {len(found)} runs ({listed}). Import each by itself.")
        return found[0] if found else ""

    def _sources(self, results: Mapping[str, object], results_name: str) -> dict[str, str | Sequence[object]]:
        """The samples of each task: the name of their file, or the samples themselves."""
        inside = as_object(results.get("samples"))
        if inside:
            return {task: as_list(samples) for task, samples in inside.items() if as_list(samples)}
        known = sorted({*as_object(results.get("configs")), *as_object(results.get("results"))}, key=len)
        found: dict[str, str | Sequence[object]] = {}
        for name in self._files.names:
            base = PurePosixPath(name).name
            if name == results_name or not base.endswith((".jsonl", ".json")):
                continue
            task = self._task_name(base, known)
            if not task:
                continue
            if task in found:
                raise LogProblem(f"It has two files of samples of {task}: {found[task]} and {name}.")
            found[task] = name
        return found

    def _task_name(self, base: str, known: Sequence[str]) -> str:
        if self._options.task and len(self._files.names) == 1:
            return self._options.task
        if matched := _SAMPLES.fullmatch(base):
            return matched["task"]
        stem = base.rpartition(".")[0]
        # The longest: boolq is the end of super_boolq too.
        return next((task for task in reversed(known) if stem == task or stem.endswith(f"_{task}")), "")

    def _lines(self, source: str | Sequence[object]) -> Iterator[tuple[SampleLine, tuple[int, int]]]:
        """Lines with their documents: a number may stand for several, of processes that counted alone."""
        seen: dict[tuple[int, str], int] = {}
        for number, value in enumerate(self._values(source)):
            line = sample_line(value, number)
            if "doc_id" not in line.fields and "arguments" not in line.fields:
                raise LogProblem(f"Line {number + 1} of its samples has neither doc_id nor arguments.")
            count = seen.get((line.doc_id, line.filter), 0)
            seen[line.doc_id, line.filter] = count + 1
            yield line, (line.doc_id, count)

    def _values(self, source: str | Sequence[object]) -> Iterator[object]:
        if not isinstance(source, str):
            yield from source
        elif self._files.begins_with(source).startswith(b"["):
            yield from as_list(self._files.document(source))
        else:
            for number, line in self._files.lines(source):
                yield parsed(line, f"Line {number} of {source}")

    def _task(self, name: str, source: str | Sequence[object], results: Mapping[str, object]) -> LoggedTask:
        read = _Read()
        for line, key in self._lines(source):
            read.add(line, key)
        if read.first is None:
            raise LogProblem(f"It has no samples of {name}.")
        config = as_object(member(results, "configs", name))
        output_type = output_type_of(read.first, config)
        version = self._version(name, results, config)
        self._writer.begin(name, version)
        written: set[tuple[int, int]] = set()
        for line, key in self._lines(source):
            if key in written:
                continue
            written.add(key)
            # Where some scores are numbers, pairs are of another kind.
            scores = {
                read.key(metric, of_filter): score
                for (metric, of_filter), score in read.scores[key].items()
                if read.metrics[metric] or not isinstance(score, tuple)
            }
            self._writer.add(row_of(line, output_type), [answers_of(line, output_type, scores)])
        figures, less = _figures(results, name), _less_is_better(results, name)
        count = self._writer.end()
        self._note_figures(name, read, figures)
        self._note_count(name, count, results)
        request = _request(results, config, read.first, output_type)
        shots = _shots(results, config, name)
        has_limit = bool(as_count(member(results, "n-samples", name, "original")))
        unknown = unknown_conditions(request, is_generated=output_type is OutputType.GENERATE_UNTIL)
        told = {SHOTS: shots is not None, LIMIT: has_limit}
        return LoggedTask(
            task=name,
            version=version,
            output_type=output_type,
            metrics=tuple(
                logged_metric(metric, is_of_pairs=is_of_pairs, less_is_better=metric in less)
                for metric, is_of_pairs in read.metrics.items()
            ),
            filters_json=filters_json(read.filters) if len(read.filters) > 1 else "",
            sample_count=count,
            num_fewshot=shots or 0,
            row_source=_row_source(config),
            request_json=json.dumps(request, sort_keys=True),
            unknown=(*unknown, *(condition for condition, is_told in told.items() if not is_told)),
            figures=figures,
            keeps_reasoning=output_type is OutputType.GENERATE_UNTIL,
        )

    def _version(self, name: str, results: Mapping[str, object], config: Mapping[str, object]) -> str:
        found = member(results, "versions", name)
        if found is None:
            found = member(config, "metadata", "version")
        return self._options.versions.get(name, "") if found is None else str(found)

    def _note_figures(self, name: str, read: _Read, figures: Mapping[str, float]) -> None:
        """Says which figures of the log are none of its samples'."""
        keys: dict[str, str] = {}
        for figure in figures:
            metric, _, of_filter = figure.partition(",")
            if not read.metrics.get(metric):
                is_known = not of_filter or of_filter in read.filters
                keys[figure] = read.key(metric, of_filter or NO_FILTER) if is_known else ""
            elif metric == "f1":
                key = (metric, of_filter or NO_FILTER)
                scores = [scores.get(key) for scores in read.scores.values()]
                self._notes += f1_notes(name, figure, figures[figure], scores)
        self._notes += figure_notes(name, figures, keys, self._writer)
        self._means[name] = {
            f"{metric},{of_filter}": mean
            for metric in read.metrics
            for of_filter in read.filters
            if (mean := self._writer.means.get(read.key(metric, of_filter))) is not None
        }

    def _note_count(self, name: str, count: int, results: Mapping[str, object]) -> None:
        told = as_count(member(results, "n-samples", name, "effective"))
        if told and told != count:
            self._notes.append(f"Samples of {name} in the log: {count:,}; by its own count: {told:,}.")

    def _note_group(self, group: str, results: Mapping[str, object], tasks: Sequence[LoggedTask]) -> None:
        """Figures of a group are of all its samples, as ours are."""
        if len(tasks) == 1:
            return
        for figure, value in _figures(results, group).items():
            means = [(self._means[task.task].get(figure), task.sample_count) for task in tasks]
            known = [(mean, count) for mean, count in means if mean is not None]
            mean = sum(mean * count for mean, count in known) / max(sum(count for _, count in known), 1)
            if len(known) == len(tasks) and abs(mean - value) > _CLOSE:
                self._notes.append(
                    f"{figure} of {group} is {value:g} in the log; that of all its samples is {mean:g}."
                )


def _less_is_better(results: Mapping[str, object], task: str) -> Collection[str]:
    """The metrics of which the log says so."""
    said = as_object(member(results, "higher_is_better", task))
    return [metric for metric, is_more in said.items() if is_more is False]


def _figures(results: Mapping[str, object], task: str) -> Mapping[str, float]:
    """By the log's own names, without errors of figures."""
    found = as_object(member(results, "results", task))
    numbers = {name: as_number(value) for name, value in found.items() if not isinstance(value, str)}
    left_out = ("alias", "samples", "sample_len", "name")
    return {
        name: value
        for name, value in numbers.items()
        if value is not None and "_stderr" not in name and name not in left_out
    }


def _request(
    results: Mapping[str, object], config: Mapping[str, object], first: SampleLine, output_type: OutputType
) -> dict[str, object]:
    """What the log tells of the requests, by the names of conditions."""
    request: dict[str, object] = {}
    if "chat_template_sha" in results or "chat_template" in results:
        is_chat = results.get("chat_template_sha") or results.get("chat_template")
        request["prompt_form"] = "chat" if is_chat else "completion"
    if output_type is not OutputType.GENERATE_UNTIL:
        return request
    sent = as_object(first.arguments[0][1]) if first.arguments and len(first.arguments[0]) > 1 else {}
    told = {**as_object(config.get("generation_kwargs")), **sent}
    request |= told_numbers(told, _GENERATION)
    # It is greedy unless it is told to sample.
    if told.get("do_sample") is False:
        request["temperature"] = 0.0
    if "until" in told:
        stops = told["until"]
        request["stop"] = [as_text(each) for each in (as_list(stops) or [stops])]
    return request


def _shots(results: Mapping[str, object], config: Mapping[str, object], name: str) -> int | None:
    for found in (member(results, "n-shot", name), config.get("num_fewshot")):
        if (number := as_number(found)) is not None and 0 <= number < 2**31:
            return int(number)
    return None


def _limit(results: Mapping[str, object], tasks: Sequence[LoggedTask]) -> int | None:
    """None where each task has all of its rows, or the log does not tell."""
    limited = [
        as_count(member(results, "n-samples", task.task, "effective"), below=ORDERED_BELOW)
        for task in tasks
        if as_count(member(results, "n-samples", task.task, "original"))
        > as_count(member(results, "n-samples", task.task, "effective"))
    ]
    return max(limited, default=0) or None


def _row_source(config: Mapping[str, object]) -> str:
    words = (config.get("dataset_path"), config.get("dataset_name"), config.get("test_split"))
    return " ".join(as_text(word) for word in words if as_text(word))


def _model(results: Mapping[str, object]) -> str:
    """`source/name`, from the fields of newer logs or the arguments of the model."""
    source = as_text(results.get("model_source")) or as_text(member(results, "config", "model"))
    name = as_text(results.get("model_name"))
    if not name:
        arguments = member(results, "config", "model_args")
        if isinstance(arguments, str):
            pairs = dict(each.split("=", 1) for each in arguments.split(",") if "=" in each)
        else:
            pairs = {key: as_text(value) for key, value in as_object(arguments).items()}
        name = pairs.get("pretrained") or pairs.get("model") or ""
    name = name.strip().strip("/")
    return f"{source or TOOL}/{name}" if name else ""


def _benchmark(results: Mapping[str, object], tasks: Sequence[LoggedTask]) -> str:
    """The one task, or the group that has all of them, or a name for any."""
    names = {task.task for task in tasks}
    if len(names) == 1:
        return next(iter(names))
    groups = as_object(results.get("group_subtasks"))
    # The smallest: the last of those that are listed from the whole to its parts.
    return next((group for group in reversed(list(groups)) if names == _tasks_of(group, groups)), TOOL)


def _tasks_of(group: str, groups: Mapping[str, object]) -> set[str]:
    """The tasks of a group and of the groups in it, each of which counts once."""
    found, left, seen = set[str](), [group], set[str]()
    while left:
        name = left.pop()
        members = [as_text(each) for each in as_list(groups.get(name))]
        if not members:
            found.add(name)
        elif name not in seen:
            left += members
        seen.add(name)
    return found


def _environment(results: Mapping[str, object]) -> Mapping[str, str]:
    known = {
        "date": results.get("date"),
        "git_hash": results.get("git_hash"),
        "transformers": results.get("transformers_version"),
        "model_args": member(results, "config", "model_args"),
        "model_sha": member(results, "config", "model_sha"),
        "model_dtype": member(results, "config", "model_dtype"),
    }
    worded = {name: value if isinstance(value, str) else json.dumps(value) for name, value in known.items()}
    return {name: worded[name][:500] for name in known if known[name] not in (None, "")}
