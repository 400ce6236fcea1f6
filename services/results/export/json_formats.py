"""JSONL: one object per line, of outcomes or of a batch. JSON: one document with the run and its figures."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

import orjson

from proctor.values.openai import CompletionHead, choice, completion, request_id
from proctor.values.plain import Json, with_line_feeds_only
from proctor.values.usage import USAGE_NAMES, TokenUsage
from services.results.export.exported_run import ExportedRun, MissingAnswer, RowKind
from services.results.export.ports import ExportRow, RowFormat
from services.results.runs.run_plan import UNSPECIFIED

_MEDIA_TYPE = "application/jsonl"


@dataclass(frozen=True, slots=True)
class BatchLineWriter:
    """Ids of lines are the same whenever a file is made."""

    run_id: str
    model: str
    missing: MissingAnswer

    def output(self, row: ExportRow) -> Json:
        """The provider's own body, else a completion made of the answer."""
        sample_id = request_id(self.run_id, row["sample"])
        body = orjson.Fragment(row["body"]) if row["body"] else self._completion(sample_id, row)
        response = {"status_code": 200, "request_id": sample_id, "body": body}
        return _line(sample_id, row, response, None)

    def error(self, row: ExportRow) -> Json:
        """Why there is no answer."""
        is_missing = row["failure_class"] is None
        code = self.missing.code if is_missing else row["failure_class"]
        message = self.missing.message if is_missing else row["failure_message"]
        return _line(request_id(self.run_id, row["sample"]), row, None, {"code": code, "message": message})

    def _completion(self, sample_id: str, row: ExportRow) -> Json:
        head = CompletionHead(sample_id, int(row["recorded_at"].timestamp()), self.model, row["is_chat"])
        answer = choice(
            row["answer"], row["finish_reason"], is_chat=row["is_chat"], reasoning=row["reasoning"]
        )
        return completion(head, [answer], TokenUsage(**{name: row[name] for name in USAGE_NAMES}))


def _line(sample_id: str, row: ExportRow, response: Json | None, error: Json | None) -> Json:
    line_id = f"batch_req_{sample_id}"
    return {"id": line_id, "custom_id": row["custom_id"], "response": response, "error": error}


@dataclass(frozen=True, slots=True)
class JsonlFile:
    """`line`: the object of a row; the text that Postgres made of it, where there is nothing to be made."""

    line: Callable[[ExportRow], bytes]

    def begin(self) -> bytes:
        return b""

    def write(self, rows: Sequence[ExportRow]) -> bytes:
        return with_line_feeds_only(b"".join([self.line(row) for row in rows]))

    def end(self) -> bytes:
        return b""


class JsonFile:
    """The outcomes are the last member, so they are written as they are read, without being held."""

    def __init__(self, run: ExportedRun) -> None:
        self._run = run
        self._has_outcomes = False

    def begin(self) -> bytes:
        head = orjson.dumps({"run": run_facts(self._run), "summary": _figures(self._run)})
        return head.removesuffix(b"}") + b',"outcomes":['

    def write(self, rows: Sequence[ExportRow]) -> bytes:
        separator = b",\n" if self._has_outcomes else b"\n"
        self._has_outcomes = True
        return separator + ",\n".join([row["line"] for row in rows]).encode()

    def end(self) -> bytes:
        return b"\n]}\n"


def _figures(run: ExportedRun) -> Mapping[str, object]:
    return {**asdict(run.summary), "cost": run.summary.cost}


def run_facts(run: ExportedRun) -> Mapping[str, object]:
    """Facts of a run: the order, its end and its environment."""
    record = run.record
    return {
        "run_id": record.plan.run_id,
        **asdict(record.plan.facts),
        "state": record.state or "open",
        "frozen_at": record.frozen_at,
        "scoring_method": record.plan.scoring_method or UNSPECIFIED,
        "rollouts": record.plan.rollouts,
        "environment": dict(run.environment),
    }


def _outcome_file(_: ExportedRun) -> JsonlFile:
    return JsonlFile(lambda row: row["line"].encode() + b"\n")


def _output_file(run: ExportedRun) -> JsonlFile:
    lines = _batch_lines(run)
    return JsonlFile(lambda row: orjson.dumps(lines.output(row), option=orjson.OPT_APPEND_NEWLINE))


def _error_file(run: ExportedRun) -> JsonlFile:
    lines = _batch_lines(run)
    return JsonlFile(lambda row: orjson.dumps(lines.error(row), option=orjson.OPT_APPEND_NEWLINE))


def _batch_lines(run: ExportedRun) -> BatchLineWriter:
    plan = run.record.plan
    return BatchLineWriter(plan.run_id, plan.facts.model, run.missing)


JSON = RowFormat(".json", "application/json", JsonFile, RowKind.LINE, has_figures=True)
JSONL = RowFormat(".jsonl", _MEDIA_TYPE, _outcome_file, RowKind.LINE, is_resumable=True)
BATCH_OUTPUT = RowFormat(
    "_output.jsonl", _MEDIA_TYPE, _output_file, RowKind.BATCH_ANSWER, is_of_one_task=True
)
BATCH_ERRORS = RowFormat("_errors.jsonl", _MEDIA_TYPE, _error_file, RowKind.BATCH_ERROR, is_of_one_task=True)
