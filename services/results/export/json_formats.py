"""JSONL: one object per line as Postgres makes them, also of batches. JSON: one document."""

from collections.abc import Mapping
from dataclasses import asdict

import orjson

from proctor.values.plain import with_line_feeds_only
from services.results.export.format import ExportedRun, LineForm
from services.results.export.lines import LineKind
from services.results.runs.run_plan import UNSPECIFIED
from services.results.summaries.run_summary import RunSummary

_MEDIA_TYPE = "application/jsonl"


class JsonlFile:
    def begin(self) -> bytes:
        return b""

    def write(self, lines: bytes) -> bytes:
        return with_line_feeds_only(lines)

    def end(self) -> bytes:
        return b""


def _open(_: ExportedRun) -> JsonlFile:
    return JsonlFile()


def _batch_file(suffix: str, lines: LineKind) -> LineForm:
    return LineForm(suffix, _MEDIA_TYPE, _open, lines, is_of_one_task=True)


JSONL = LineForm(".jsonl", _MEDIA_TYPE, _open, is_resumable=True)
BATCH_OUTPUT = _batch_file("_output.jsonl", LineKind.BATCH_OUTPUT)
BATCH_ERRORS = _batch_file("_errors.jsonl", LineKind.BATCH_ERROR)


class JsonFile:
    """Written as it goes: the outcomes are the last member, so that nothing is held."""

    def __init__(self, run: ExportedRun) -> None:
        self._run = run
        self._has_outcomes = False

    def begin(self) -> bytes:
        head = orjson.dumps({"run": run_facts(self._run), "summary": _figures(self._run.summary)})
        return head.removesuffix(b"}") + b',"outcomes":['

    def write(self, lines: bytes) -> bytes:
        separator = b",\n" if self._has_outcomes else b"\n"
        self._has_outcomes = True
        # Within a line there is no other line break than one that is escaped.
        return separator + lines.removesuffix(b"\n").replace(b"\n", b",\n")

    def end(self) -> bytes:
        return b"\n]}\n"


def _figures(summary: RunSummary) -> Mapping[str, object]:
    return {**asdict(summary), "cost": summary.cost}


def run_facts(run: ExportedRun) -> Mapping[str, object]:
    """What was ordered, how it ended and what it ran on."""
    record = run.record
    return {
        "run_id": record.plan.run_id,
        **asdict(record.plan.facts),
        "state": record.state or "open",
        "closed_at": record.closed_at,
        "scoring_method": record.plan.scoring_method or UNSPECIFIED,
        "rollouts": record.plan.rollouts,
        "environment": dict(run.environment),
    }


JSON = LineForm(".json", "application/json", JsonFile, has_figures=True)
