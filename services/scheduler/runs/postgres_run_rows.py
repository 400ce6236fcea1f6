"""Rows become runs and tasks."""

import asyncpg

from services.scheduler.prices.cost_estimate import PastUsage
from services.scheduler.runs.json_runs import (
    counts_from_json,
    facts_from_json,
    generation_from_json,
    order_from_json,
    price_from_json,
)
from services.scheduler.runs.model_price import TokenUsage
from services.scheduler.runs.run import Run, RunError, RunId, RunState
from services.scheduler.runs.run_estimate import PastRun
from services.scheduler.runs.run_order import ScoringMethod
from services.scheduler.shards.planned_task import PlannedTask
from services.scheduler.suites.suite import OutputType


def run_from_row(row: asyncpg.Record) -> Run:
    return Run(
        run_id=RunId(str(row["run_id"])),
        order=order_from_json(row["ordered"]),
        user=row["username"],
        pool=row["pool"],
        scoring_method=ScoringMethod(row["scoring_method"]),
        created_at=row["created_at"],
        state=RunState(row["state"]),
        epoch=row["epoch"],
        step=row["step"],
        planned_epoch=row["planned_epoch"],
        is_closed=row["is_closed"],
        total=row["total"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        deadline=row["deadline"],
        error=RunError(row["error_reason"], row["error_message"]) if row["error_reason"] else None,
        environment=facts_from_json(row["environment"]),
        final_counts=counts_from_json(row["final_counts"]),
        suite_version=row["suite_version"] or 0,
        price=price_from_json(row["price"]),
        reused_answers=row["reused_answers"],
        admitted_at=row["admitted_at"],
        ran_seconds=row["ran_seconds"],
        dataset_name=row["dataset_name"],
        expires_at=row["expires_at"],
    )


def past_run_from_row(row: asyncpg.Record) -> PastRun:
    order = order_from_json(row["ordered"])
    return PastRun(order.tasks, order.limit, order.rollouts, row["total"], row["seconds"])


def past_usage_from_row(row: asyncpg.Record) -> PastUsage:
    counts = counts_from_json(row["final_counts"])
    return PastUsage(past_run_from_row(row), counts.usage if counts else TokenUsage())


def task_from_row(row: asyncpg.Record) -> PlannedTask:
    return PlannedTask(
        task=row["task"],
        version=row["version"],
        sample_set_id=row["sample_set_id"],
        first_sample=row["first_sample"],
        sample_count=row["sample_count"],
        output_type=OutputType(row["output_type"]),
        num_fewshot=row["num_fewshot"],
        is_stand_in=row["is_stand_in"],
        dataset=row["dataset"],
        dataset_revision=row["dataset_revision"],
        generation=generation_from_json(row["generation"]),
    )
