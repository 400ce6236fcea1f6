"""Reads the form of Every Eval Ever: a document of figures, and a JSON line for each sample."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from proctor.values.outcome import Answer
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
    LogProblem,
    as_count,
    as_list,
    as_number,
    as_object,
    as_text,
    member,
    parsed,
)
from services.scheduler.imports.logs.figure_notes import figure_notes
from services.scheduler.imports.logs.log_files import LogFiles
from services.scheduler.imports.logs.sample_writer import LoggedRow, SampleWriter
from services.scheduler.imports.logs.unknown_conditions import (
    AGENT,
    LIMIT,
    SHOTS,
    told_numbers,
    unknown_conditions,
)

TOOL = "every_eval_ever"
# The metric of a score whose document names none.
_SCORE = "score"
_GENERATION = {name: name for name in ("temperature", "top_p", "top_k", "max_tokens")}

Line = Mapping[str, object]


def is_every_eval_document(document: object) -> bool:
    header = as_object(document)
    return "evaluation_id" in header and "evaluation_results" in header


def looks_like_every_eval(files: LogFiles) -> bool:
    for name in files.names:
        if name.endswith(".jsonl"):
            for _, line in files.lines(name):
                found = as_object(parsed(line, name))
                return "evaluation_name" in found and "model_id" in found
    [name, *others] = [name for name in files.names if name.endswith(".json")] or [""]
    return bool(name) and not others and is_every_eval_document(files.document(name))


class EveryEvalLog:
    def __init__(self, files: LogFiles, options: ReadOptions, writer: SampleWriter) -> None:
        self._files = files
        self._options = options
        self._writer = writer
        self._notes: list[str] = []

    def read(self) -> LoggedRun:
        """Raises `LogProblem`."""
        names = [name for name in self._files.names if name.endswith(".json")]
        if len(names) > 1:
            raise LogProblem(f"It has {len(names)} documents. Import each with its samples by itself.")
        header = as_object(self._files.document(names[0])) if names else {}
        evaluations: dict[str, None] = {}
        model = ""
        for _, line in self._lines():
            evaluations.setdefault(_name(line))
            model = model or as_text(line.get("model_id"))
        if not evaluations:
            raise LogProblem("It has figures and no samples; a run is made of the lines of its samples.")
        tasks = tuple(self._task(name, header) for name in evaluations)
        model = self._options.model or model or as_text(member(header, "model_info", "id"))
        library = as_text(member(header, "eval_library", "name"))
        return LoggedRun(
            tool=TOOL,
            tool_version=as_text(header.get("schema_version")),
            model=model if "/" in model else f"{TOOL}/{model}",
            benchmark=self._options.benchmark or (tasks[0].task if len(tasks) == 1 else TOOL),
            tasks=tasks,
            environment={
                "evaluation_id": as_text(header.get("evaluation_id")),
                "eval_library": library,
                "source": as_text(member(header, "source_metadata", "source_organization_name")),
            },
            notes=tuple(self._notes),
        )

    def _lines(self) -> Iterator[tuple[int, Line]]:
        for name in self._files.names:
            if PurePosixPath(name).suffix == ".jsonl":
                for number, line in self._files.lines(name):
                    yield number, as_object(parsed(line, f"Line {number} of {name}"))

    def _task(self, name: str, header: Mapping[str, object]) -> LoggedTask:
        result = _result(name, header)
        metric = as_text(member(result, "metric_config", "metric_name")) or _SCORE
        is_less = member(result, "metric_config", "lower_is_better") is True
        grouped: dict[str, list[Line]] = {}
        for number, line in self._lines():
            if _name(line) == name:
                grouped.setdefault(as_text(line.get("sample_id")) or str(number), []).append(line)
        version = self._options.versions.get(name, "")
        self._writer.begin(name, version)
        for number, (sample_id, lines) in enumerate(grouped.items()):
            self._writer.add(_row(number, sample_id, lines[0]), [_answer(line, metric) for line in lines])
        count = self._writer.end()
        figure = as_number(member(result, "score_details", "score"))
        figures = {} if figure is None else {metric: figure}
        self._notes += figure_notes(name, figures, {each: each for each in figures}, self._writer)
        request = _request(result)
        return LoggedTask(
            task=name,
            version=version,
            output_type=OutputType.GENERATE_UNTIL,
            metrics=(logged_metric(metric, is_of_pairs=False, less_is_better=is_less),),
            sample_count=count,
            row_source=as_text(member(result, "source_data", "dataset_name")),
            request_json=json.dumps(request, sort_keys=True),
            unknown=(*unknown_conditions(request, is_generated=True), SHOTS, LIMIT, AGENT),
            figures=figures,
        )


def _name(line: Line) -> str:
    return as_text(line.get("evaluation_name")) or "evaluation"


def _result(name: str, header: Mapping[str, object]) -> Mapping[str, object]:
    results = [as_object(each) for each in as_list(header.get("evaluation_results"))]
    return next((each for each in results if each.get("evaluation_name") == name), {})


def _row(number: int, sample_id: str, line: Line) -> LoggedRow:
    asked = as_object(line.get("input"))
    text = as_text(asked.get("formatted")) or as_text(asked.get("raw"))
    return LoggedRow(number, _prompt(line, text), _target(asked), doc=asked, row_id=sample_id[:512])


def _target(asked: Mapping[str, object]) -> Target:
    """Documents before 0.3 have one text."""
    reference = asked.get("reference")
    return Target(texts=tuple(as_text(each) for each in (as_list(reference) or [reference]) if each))


def _turns(line: Line) -> Sequence[Mapping[str, object]]:
    """Documents before 0.3 call them interactions."""
    return [as_object(each) for each in as_list(line.get("messages")) or as_list(line.get("interactions"))]


def _prompt(line: Line, text: str) -> Prompt:
    if text:
        return Prompt(text)
    turns = []
    for turn in _turns(line):
        if turn.get("role") == "assistant":
            break
        turns.append(ChatMessage(as_text(turn.get("role")) or "user", as_text(turn.get("content"))))
    return Prompt(None, tuple(turns)) if turns else Prompt("")


def _answer(line: Line, metric: str) -> LoggedAnswer:
    usage, performance = as_object(line.get("token_usage")), as_object(line.get("performance"))
    tokens = TokenUsage(
        as_count(usage.get("input_tokens")),
        as_count(usage.get("output_tokens")),
        as_count(usage.get("input_tokens_cache_read")),
        as_count(usage.get("reasoning_tokens")),
    )
    timing = Timing((as_number(performance.get("latency_ms")) or 0.0) / 1000)
    score = as_number(member(line, "evaluation", "score"))
    said = member(line, "output", "raw")
    texts = [as_text(each) for each in as_list(said)] or [as_text(said)]
    if not texts[0]:
        replies = [as_text(turn.get("content")) for turn in _turns(line) if turn.get("role") == "assistant"]
        texts = replies[-1:] or texts
    if error := as_text(line.get("error")):
        return LoggedAnswer(None, error[:2000], usage=tokens, timing=timing)
    thoughts = [as_text(each) for each in as_list(member(line, "output", "reasoning_trace"))]
    read = [as_object(each) for each in as_list(line.get("answer_attribution"))]
    prediction = next((as_text(each.get("extracted_value")) for each in reversed(read)), "")
    return LoggedAnswer(
        Answer(texts[0], reasoning="\n".join(thoughts)),
        "",
        {} if score is None else {metric: score},
        prediction or texts[0],
        usage=tokens,
        timing=timing,
    )


def _request(result: Mapping[str, object]) -> dict[str, object]:
    told = as_object(member(result, "generation_config", "generation_args"))
    return told_numbers(told, _GENERATION)
