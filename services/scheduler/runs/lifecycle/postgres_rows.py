"""Rows of the view run_rows and of the table run_tasks as runs and planned tasks; parts of both are JSON."""

import json
from collections.abc import Mapping
from typing import TypeVar
from uuid import UUID

import asyncpg

from proctor.values.comparison import Decision
from proctor.values.names.run_labels import RunLabels
from proctor.values.plain import from_plain, to_plain
from proctor.values.priority import Priority
from proctor.values.run import ArchiveState, RunCounts, RunId, RunState
from proctor.values.scoring import OutputType, ScoringMethod
from proctor.values.usage import ModelPrice
from services.scheduler.runs.lifecycle.run import PlannedTask, Run, RunError
from services.scheduler.runs.orders.run_order import RunOrder
from services.scheduler.suites.suite import Generation

T = TypeVar("T")


def order_to_json(order: RunOrder) -> str:
    plain = to_plain(order)
    return json.dumps({name: plain[name] for name in plain if name != "priority"})


def order_from_json(text: str, priority: Priority) -> RunOrder:
    return from_plain(RunOrder, {**json.loads(text), "priority": priority})


def to_json(value: object | None) -> str | None:
    """A dataclass as JSON; None stays None."""
    return None if value is None else json.dumps(to_plain(value))


def from_json(value_type: type[T], text: str | None) -> T | None:
    return None if text is None else from_plain(value_type, json.loads(text))


def run_from_row(row: asyncpg.Record) -> Run:
    return Run(
        run_id=RunId(str(row["run_id"])),
        order=order_from_json(row["ordered"], Priority.of_number(row["priority"])),
        user=row["username"],
        pool=row["pool"],
        scoring_method=ScoringMethod(row["scoring_method"]),
        created_at=row["created_at"],
        state=RunState(row["state"]),
        epoch=row["epoch"],
        phase=row["phase"],
        planned_epoch=row["planned_epoch"],
        is_closed=row["is_closed"],
        total=row["total"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        deadline=row["deadline"],
        error=RunError(row["error_reason"], row["error_message"]) if row["error_reason"] else None,
        environment=json.loads(row["environment"]),
        final_counts=from_json(RunCounts, row["final_counts"]),
        suite_version=row["suite_version"] or 0,
        price=from_json(ModelPrice, row["price"]),
        reused_answers=row["reused_answers"],
        admitted_at=row["admitted_at"],
        ran_seconds=row["ran_seconds"],
        earlier_seconds=row["earlier_seconds"],
        dataset_name=row["dataset_name"],
        expires_at=row["expires_at"],
        is_closing=row["is_closing"],
        decision=from_json(Decision, row["decision"]),
        labels=labels_from_row(row),
        archive_state=ArchiveState(row["archive_state"]) if row["archive_state"] else None,
    )


def labels_from_row(row: asyncpg.Record) -> RunLabels:
    return RunLabels(row["name"], tuple(row["tags"]), row["note"])


def task_from_row(row: asyncpg.Record) -> PlannedTask:
    return PlannedTask(
        **{
            **row,
            "output_type": OutputType(row["output_type"]),
            "generation": from_json(Generation, row["generation"]),
        }
    )


def run_ids_from_rows(rows: list[asyncpg.Record]) -> list[RunId]:
    return [RunId(str(row["run_id"])) for row in rows]


def row_values(run: Run, request: UUID | None) -> Mapping[str, object]:
    order = run.order
    return {
        "run_id": run.run_id,
        "request_id": request,
        "username": run.user,
        "project_id": order.project_id,
        "benchmark": order.benchmark,
        "model": order.model,
        "pool": run.pool,
        "priority": order.priority.number,
        "ordered": order_to_json(order),
        "scoring_method": run.scoring_method,
        "created_at": run.created_at,
        "environment": json.dumps(dict(run.environment)),
        "suite_version": run.suite_version,
        "price": to_json(run.price),
        "dataset_id": order.dataset_id or None,
        "dataset_name": run.dataset_name,
        "expires_at": run.expires_at,
        "name": run.labels.name,
        "tags": list(run.labels.tags),
        "note": run.labels.note,
        "has_judges_to_order": bool(order.judges),
    }
