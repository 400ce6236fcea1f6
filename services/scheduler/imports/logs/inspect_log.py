"""Reads a log of Inspect: an `.eval` archive with a file for each sample, or one document with all."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence

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
from services.scheduler.imports.logs.unknown_conditions import (
    AGENT,
    LIMIT,
    SHOTS,
    told_numbers,
    unknown_conditions,
)

TOOL = "inspect"
_SAMPLE = re.compile(r"samples/(?P<id>.+)_epoch_(?P<epoch>\d+)\.json")
_HEADERS = ("header.json", "_journal/start.json")
_ATTACHMENT = "attachment://"
# Letters and words that its scorers write for numbers.
_WORDS = {"c": 1.0, "p": 0.5, "i": 0.0, "n": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_GENERATION = {name: name for name in ("temperature", "top_p", "top_k", "max_tokens", "seed")}

Sample = Mapping[str, object]


def looks_like_inspect(files: LogFiles) -> bool:
    if any(files.has(name) for name in _HEADERS):
        return True
    [name, *others] = files.names
    return not others and name.endswith(".json") and is_inspect_document(files.document(name))


def is_inspect_document(document: object) -> bool:
    header = as_object(document)
    return "eval" in header and "plan" in header


class InspectLog:
    def __init__(self, files: LogFiles, options: ReadOptions, writer: SampleWriter) -> None:
        self._files = files
        self._options = options
        self._writer = writer
        self._metrics: dict[str, None] = {}

    def read(self) -> LoggedRun:
        """Raises `LogProblem`."""
        header = self._header()
        evaluation = as_object(header.get("eval"))
        name = as_text(evaluation.get("task")).rpartition("/")[2]
        model = self._options.model or as_text(evaluation.get("model"))
        if not name or not model:
            raise LogProblem("Its header names no task or no model.")
        name = self._options.task or name
        version = str(evaluation.get("task_version") or self._options.versions.get(name, ""))
        self._writer.begin(name, version)
        for number, samples in enumerate(self._grouped(header)):
            self._add(number, samples)
        count = self._writer.end()
        if not count:
            raise LogProblem("It has no samples; Inspect writes them unless --no-log-samples is given.")
        figures, means = _figures(header)
        request = _request(evaluation, header)
        task = LoggedTask(
            task=name,
            version=version,
            output_type=OutputType.GENERATE_UNTIL,
            metrics=tuple(logged_metric(metric, is_of_pairs=False) for metric in self._metrics),
            sample_count=count,
            row_source=as_text(member(evaluation, "dataset", "name")),
            request_json=json.dumps(request, sort_keys=True),
            unknown=(
                *unknown_conditions(request, is_generated=True),
                SHOTS,
                AGENT,
                *_unknown_limit(evaluation),
            ),
            figures=figures,
        )
        # A scorer that gives several numbers has them by its own name.
        keys = {
            figure: next((metric for metric in metrics if metric in self._metrics), "")
            for figure, metrics in means.items()
        }
        return LoggedRun(
            tool=TOOL,
            tool_version=as_text(member(evaluation, "packages", "inspect_ai")),
            model=model if "/" in model else f"{TOOL}/{model}",
            benchmark=self._options.benchmark or name,
            tasks=(task,),
            limit=_limit(evaluation),
            environment=_environment(evaluation),
            notes=(*_end_notes(header), *figure_notes(name, figures, keys, self._writer)),
        )

    def _header(self) -> Mapping[str, object]:
        found = next((name for name in (*_HEADERS, self._files.names[0]) if self._files.has(name)), "")
        return as_object(self._files.document(found))

    def _grouped(self, header: Mapping[str, object]) -> Iterator[Sequence[Sample]]:
        """The samples with one id, by epoch."""
        if inside := as_list(header.get("samples")):
            by_id: dict[str, dict[object, Sample]] = {}
            for number, each in enumerate(map(as_object, inside)):
                epoch = as_count(each.get("epoch"))
                # Of an epoch that is there twice the last one counts, as in an archive.
                by_id.setdefault(str(each.get("id")), {})[epoch or f"line {number}"] = each
            yield from (list(epochs.values()) for epochs in by_id.values())
            return
        names: dict[str, list[tuple[int, str]]] = {}
        for name in self._files.names:
            if matched := _SAMPLE.fullmatch(name):
                names.setdefault(matched["id"], []).append((int(matched["epoch"]), name))
        for sample_id in sorted(names, key=_in_order):
            yield [as_object(self._files.document(name)) for _, name in sorted(names[sample_id])]

    def _add(self, number: int, samples: Sequence[Sample]) -> None:
        first = samples[0]
        doc = {name: first.get(name) for name in ("id", "input", "choices", "target", "metadata")}
        targets = as_list(first.get("target")) or [first.get("target")]
        row = LoggedRow(
            number,
            _prompt(first),
            Target(texts=tuple(_as_text(each) for each in targets if each is not None)),
            doc=doc,
            row_id=str(first.get("id", ""))[:512],
        )
        self._writer.add(row, [self._answer(each) for each in samples])

    def _answer(self, sample: Sample) -> LoggedAnswer:
        timing = Timing(as_number(sample.get("total_time")) or 0.0)
        usage = _usage(sample)
        error = member(sample, "error", "message")
        scores, predictions = self._scores(sample)
        choice = as_object(next(iter(as_list(member(sample, "output", "choices"))), None))
        text, reasoning = _content(member(choice, "message", "content"), sample)
        text = text or as_text(member(sample, "output", "completion"))
        if error is not None and not scores:
            return LoggedAnswer(None, str(error)[:2000], usage=usage, timing=timing)
        answer = Answer(text, as_text(choice.get("stop_reason")), reasoning=reasoning)
        prediction = next(iter(predictions), "")
        return LoggedAnswer(answer, "", scores, prediction or text, usage=usage, timing=timing)

    def _scores(self, sample: Sample) -> tuple[dict[str, float], list[str]]:
        """Numbers by scorer, or by `scorer/name` where it gives several; and what the scorers read."""
        found: dict[str, float] = {}
        predictions: list[str] = []
        given = sample.get("scores")
        # Logs of 2024 have one score and no names.
        scores = as_object(given) or ({"score": sample["score"]} if sample.get("score") else {})
        for scorer, score in scores.items():
            value = member(score, "value")
            parts = (
                {f"{scorer}/{name}": each for name, each in value.items()}
                if isinstance(value, dict)
                else {scorer: value}
            )
            found |= {name: number for name, each in parts.items() if (number := _number(each)) is not None}
            if answer := as_text(member(score, "answer")):
                predictions.append(answer)
        self._metrics.update(dict.fromkeys(found))
        return found, predictions


def _number(value: object) -> float | None:
    if isinstance(value, str) and value.strip().lower() in _WORDS:
        return _WORDS[value.strip().lower()]
    return as_number(value)


def _in_order(sample_id: str) -> tuple[int, int, str]:
    """Numbers by their size, then texts."""
    is_number = sample_id.isascii() and sample_id.isdecimal() and len(sample_id) < 18
    return (0, int(sample_id), "") if is_number else (1, 0, sample_id)


def _prompt(sample: Sample) -> Prompt:
    """What the model is sent first; or the input of the row, where that is not logged."""
    turns = []
    for turn in map(as_object, as_list(sample.get("messages"))):
        if turn.get("role") == "assistant" and turn.get("source") != "input":
            break
        turns.append(turn)
    if not turns:
        given = sample.get("input")
        if isinstance(given, str):
            return Prompt(_resolved(given, sample))
        turns = [as_object(each) for each in as_list(given)]
    messages = [
        ChatMessage(as_text(turn.get("role")) or "user", _content(turn.get("content"), sample)[0])
        for turn in turns
    ]
    if len(messages) == 1 and messages[0].role == "user":
        return Prompt(messages[0].content)
    return Prompt(None, tuple(messages)) if messages else Prompt("")


def _content(value: object, sample: Sample) -> tuple[str, str]:
    """Text and reasoning of a message, which may have parts."""
    if isinstance(value, str):
        return _resolved(value, sample), ""
    texts, reasoning = [], []
    for part in map(as_object, as_list(value)):
        if text := as_text(part.get("text")):
            texts.append(_resolved(text, sample))
        elif thought := as_text(part.get("reasoning")):
            reasoning.append(_resolved(thought, sample))
        elif kind := as_text(part.get("type")):
            texts.append(f"[{kind}]")
    return "\n".join(texts), "\n".join(reasoning)


def _resolved(text: str, sample: Sample) -> str:
    """Long texts stand once, apart."""
    if not text.startswith(_ATTACHMENT):
        return text
    kept = member(sample, "attachments", text.removeprefix(_ATTACHMENT))
    return kept if isinstance(kept, str) else text


def _usage(sample: Sample) -> TokenUsage:
    used = [as_object(each) for each in as_object(sample.get("model_usage")).values()]

    def total(*names: str) -> int:
        # A sum of many may need more than 64 bits.
        return as_count(sum(as_count(each.get(name)) for each in used for name in names))

    # Tokens of a cache are counted apart there.
    cached = total("input_tokens_cache_read")
    prompt = total("input_tokens", "input_tokens_cache_write") + cached
    return TokenUsage(prompt, total("output_tokens"), cached, total("reasoning_tokens"))


def _request(evaluation: Mapping[str, object], header: Mapping[str, object]) -> dict[str, object]:
    told = {
        **as_object(member(header, "plan", "config")),
        **as_object(evaluation.get("model_generate_config")),
    }
    request: dict[str, object] = {"prompt_form": "chat"}
    request |= told_numbers(told, _GENERATION)
    if stops := as_list(told.get("stop_seqs")):
        request["stop"] = [as_text(stop) for stop in stops]
    return request


def _end_notes(header: Mapping[str, object]) -> tuple[str, ...]:
    status = as_text(header.get("status"))
    return () if status in ("success", "") else (f"The evaluation ended as {status}.",)


def _figures(header: Mapping[str, object]) -> tuple[Mapping[str, float], Mapping[str, Sequence[str]]]:
    """The figures of the log, and the metrics of which one may be the mean, for those that are means."""
    found: dict[str, float] = {}
    means: dict[str, Sequence[str]] = {}
    for score in map(as_object, as_list(member(header, "results", "scores"))):
        scorer, reducer = as_text(score.get("name")), as_text(score.get("reducer"))
        of_epochs = "" if reducer in ("", "mean") else f" ({reducer})"
        for name, metric in as_object(score.get("metrics")).items():
            value = as_number(member(metric, "value"))
            if value is None or "stderr" in name or name in ("std", "var"):
                continue
            figure = f"{scorer}/{name}{of_epochs}"
            found[figure] = value
            if name in ("accuracy", "mean") and not of_epochs:
                means[figure] = (scorer, f"{as_text(score.get('scorer'))}/{scorer}")
    return found, means


def _limit(evaluation: Mapping[str, object]) -> int | None:
    return as_count(member(evaluation, "config", "limit"), below=ORDERED_BELOW) or None


def _unknown_limit(evaluation: Mapping[str, object]) -> tuple[str, ...]:
    """Which samples were asked: a limit may be a range, and ids may be chosen."""
    config = as_object(evaluation.get("config"))
    is_known = not isinstance(config.get("limit"), list) and not config.get("sample_id")
    return () if is_known else (LIMIT,)


def _environment(evaluation: Mapping[str, object]) -> Mapping[str, str]:
    known = {
        "created": evaluation.get("created"),
        "task": evaluation.get("task"),
        "task_args": evaluation.get("task_args"),
        "commit": member(evaluation, "revision", "commit"),
        "model_base_url": evaluation.get("model_base_url"),
    }
    return {name: _as_text(value)[:500] for name, value in known.items() if value}


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
