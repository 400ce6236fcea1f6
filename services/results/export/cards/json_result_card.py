"""A run as a result card: facts, conditions, engine and figures, signed with a tree over all its outcomes.

The leaves of the outcomes are the lines of the JSONL export, byte by byte.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import orjson

from proctor.values.plain import with_line_feeds_only
from proctor.wire.result_card import FORMAT, DigestTree, SampleTree, signed_content
from services.results.export.exported_run import ExportedRun, RowKind
from services.results.export.ports import ExportRow, RowFormat
from services.results.leaderboard.conditions import conditions_of
from services.results.runs.conditions import EvaluatedRun
from services.results.runs.run_plan import RunPlan
from services.results.scoring.compiled_scoring import CompiledScoring
from services.results.statistics.figure import Figure
from services.results.summaries.run_summary import GroupSummary, TaskSummary


@dataclass(slots=True)
class ResultCardFile:
    """Keeps some dozens of digests while the lines go by."""

    run: ExportedRun
    samples: SampleTree = field(default_factory=SampleTree)
    outcomes: DigestTree = field(default_factory=DigestTree)

    def begin(self) -> bytes:
        return b""

    def write(self, rows: Sequence[ExportRow]) -> bytes:
        for row in rows:
            line = with_line_feeds_only(row["line"].encode() + b"\n")
            self.outcomes.add(line)
            self.samples.add(orjson.loads(line))
        return b""

    def end(self) -> bytes:
        key = self.run.signing_key
        assert key is not None
        public = key.public_key().public_bytes_raw()
        card = {
            "format": FORMAT,
            "key": base64.b64encode(public).decode(),
            "run": _facts(self.run),
            "samples": self.samples.tree.shown(),
            "outcomes": self.outcomes.shown(),
            "conditions": _conditions(self.run),
            "engine": dict(sorted(self.run.environment.items())),
            "figures": _figures(self.run),
        }
        signature = base64.b64encode(key.sign(signed_content(card))).decode()
        return json.dumps({**card, "signature": signature}, indent=2, ensure_ascii=False).encode() + b"\n"


def _facts(run: ExportedRun) -> Mapping[str, object]:
    record, summary = run.record, run.summary
    plan, facts = record.plan, record.plan.facts
    return {
        "run_id": plan.run_id,
        "epoch": record.epoch,
        "benchmark": facts.benchmark,
        "dataset_name": facts.dataset_name,
        "suite_version": facts.suite_version,
        "model": facts.model,
        "ordered_at": facts.created_at.isoformat() if facts.created_at else None,
        "closed_at": record.frozen_at.isoformat() if record.frozen_at else None,
        "state": record.state,
        "rollouts": plan.rollouts,
        "limit": facts.limit,
        "total": summary.total,
        "answered": summary.answered,
        "unparsed": summary.unparsed,
        "failed": summary.failed,
        "reused_answers": summary.reused_answers,
        "problems": list(summary.problems),
    }


def _conditions(run: ExportedRun) -> Mapping[str, object]:
    plan = run.record.plan
    values = conditions_of(EvaluatedRun(plan, run.environment)).values
    tasks = {
        task.task: {
            "version": task.provenance.version,
            "definition": task.provenance.definition_digest,
            "rows": task.provenance.row_source,
            "revision": task.provenance.row_source_revision,
            "samples": task.sample_count,
        }
        for task in plan.tasks
    }
    return {**dict(sorted(values.items())), "tasks": tasks}


def _figures(run: ExportedRun) -> Mapping[str, object]:
    """`of`: how a figure is made of the scores of its task; of a group its tasks and whether sizes weigh."""
    plan, summary = run.record.plan, run.summary
    tasks = [_task(task, scoring) for task, scoring in zip(summary.tasks, plan.scorings, strict=True)]
    groups = [_group(group, plan) for group in summary.groups]
    return {"tasks": tasks, "groups": groups}


def _task(task: TaskSummary, scoring: CompiledScoring) -> Mapping[str, object]:
    means = {one.key for one in scoring.scored_metrics if one.has_numbers and not one.pipeline.is_majority}
    return {
        "task": task.task,
        "answered": task.answered,
        "unparsed": task.unparsed,
        "failed": task.failed,
        # The one that counts in the score of a group.
        "main": next(iter(task.figures), ""),
        "metrics": {
            metric: {**_figure(figure), "of": "mean of rows" if metric in means else ""}
            for metric, figure in task.figures.items()
        },
    }


def _group(group: GroupSummary, plan: RunPlan) -> Mapping[str, object]:
    declared = next((one.metrics for one in plan.groups if one.group == group.group), ())
    by_size = {use.metric: use.is_weighted_by_size for use in declared}
    return {
        "group": group.group,
        "tasks": list(group.tasks),
        "metrics": {
            metric: {
                **_figure(figure),
                "by_size": metric != "score"
                and by_size.get(metric, by_size.get(metric.partition(",")[0], True)),
            }
            for metric, figure in group.figures.items()
        },
    }


def _figure(figure: Figure) -> Mapping[str, object]:
    return {
        "mean": figure.mean,
        "stderr": figure.stderr,
        "ci_low": figure.ci_low,
        "ci_high": figure.ci_high,
        "interval": figure.interval_method,
        "n": figure.n,
    }


CARD = RowFormat(
    "_card.json", "application/json", ResultCardFile, RowKind.LINE, has_figures=True, is_signed=True
)
