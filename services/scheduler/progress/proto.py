"""Counts of a run, as results reports them and as a summary holds them."""

from proctor.v1 import summary_pb2, work_messages_pb2
from proctor.values.run import RunCounts, TaskCounts
from proctor.wire.values import COUNTS, USAGE
from services.scheduler.progress.run_counts import ProgressReport


def report_from_proto(report: work_messages_pb2.ProgressReport) -> ProgressReport:
    shards = {shard.shard: shard.recorded for shard in report.shards}
    return ProgressReport(report.run_id, COUNTS.from_proto(report), shards)


def counts_from_summary(summary: summary_pb2.RunSummary, environment: dict[str, str]) -> RunCounts:
    return RunCounts(
        epoch=summary.epoch,
        tasks=tuple(
            TaskCounts(task.task, task.answered + task.failed, task.failed, task.unparsed)
            for task in summary.tasks
        ),
        failures=dict(summary.failures),
        environment=environment,
        usage=USAGE.from_proto(summary.usage),
    )
