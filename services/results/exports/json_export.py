"""One document: what the run was, its figures, and every outcome."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

import orjson

from services.results.exports.export_form import ExportForm
from services.results.exports.exported_run import ExportedRun, outcome_record
from services.results.outcomes.listed_outcome import ListedOutcome
from services.results.runs.run_summary import RunSummary


class JsonFile:
    """Written as it goes: the outcomes are the last member, so that nothing is held."""

    def __init__(self, run: ExportedRun) -> None:
        self._run = run
        self._has_outcomes = False

    def begin(self) -> bytes:
        head = orjson.dumps({"run": run_facts(self._run), "summary": _figures(self._run.summary)})
        return head.removesuffix(b"}") + b',"outcomes":['

    def write(self, outcomes: Sequence[ListedOutcome]) -> bytes:
        if not outcomes:
            return b""
        listed = b",\n".join([orjson.dumps(outcome_record(one)) for one in outcomes])
        separator = b",\n" if self._has_outcomes else b"\n"
        self._has_outcomes = True
        return separator + listed

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
        "state": record.state.name.lower() if record.state else "open",
        "closed_at": record.closed_at,
        "scoring_method": record.plan.scoring_method.name.lower(),
        "rollouts": record.plan.rollouts,
        "environment": dict(run.environment),
    }


JSON = ExportForm(".json", "application/json", JsonFile)
