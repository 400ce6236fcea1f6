"""Counts of a run, as results reports them and as a summary holds them."""

from proctor.v1 import outcome_pb2, summary_pb2, work_messages_pb2
from services.scheduler.progress.run_counts import ProgressReport, RunCounts, TaskCounts
from services.scheduler.runs.model_price import TokenUsage


def report_from_proto(report: work_messages_pb2.ProgressReport) -> ProgressReport:
    counts = RunCounts(
        epoch=report.epoch,
        tasks=tuple(
            TaskCounts(task.task, task.recorded, task.failed, task.unparsed) for task in report.tasks
        ),
        failures=dict(report.failures),
        environment=dict(report.environment),
        usage=usage_from_proto(report.usage),
    )
    return ProgressReport(report.run_id, counts, {shard.shard: shard.recorded for shard in report.shards})


def counts_from_summary(summary: summary_pb2.RunSummary, environment: dict[str, str]) -> RunCounts:
    return RunCounts(
        epoch=summary.epoch,
        tasks=tuple(
            TaskCounts(task.task, task.answered + task.failed, task.failed, task.unparsed)
            for task in summary.tasks
        ),
        failures=dict(summary.failures),
        environment=environment,
        usage=usage_from_proto(summary.usage),
    )


def usage_from_proto(usage: outcome_pb2.TokenUsage) -> TokenUsage:
    return TokenUsage(
        usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens, usage.reasoning_tokens
    )
