"""Filters of the list of runs in memory."""

from datetime import timedelta

from proctor.values.run import RunKind
from services.common.clock import SystemClock
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.reads.run_list import RunFilter


def matches(run: Run, wanted: RunFilter) -> bool:
    return (
        wanted.state in (None, run.state)
        and wanted.benchmark in ("", run.order.benchmark)
        and wanted.model in ("", run.order.model)
        and wanted.project_id in (None, run.order.project_id)
        and wanted.kind in (None, RunKind.DATASET if run.order.dataset_id else RunKind.SUITE)
        and wanted.dataset_id in ("", run.order.dataset_id)
        and run.run_id.replace("-", "").startswith(wanted.id_prefix)
        and wanted.name.lower() in run.labels.name.lower()
        and (not wanted.tag or wanted.tag in run.labels.tags)
        and (not wanted.days or run.created_at >= SystemClock().now() - timedelta(days=wanted.days))
        and (not wanted.models or run.order.model in wanted.models)
        and (not wanted.run_ids or run.run_id in wanted.run_ids)
    )
