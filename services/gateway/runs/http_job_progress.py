"""How far a job is and why it waits, in the words of the benchmark API."""

from proctor.v1 import run_pb2
from services.gateway.runs.http_job_bodies import JobProgress, JobWait


def job_progress(progress: run_pb2.RunProgress) -> JobProgress:
    percent = 100 * progress.completed / progress.total if progress.total else 0.0
    return JobProgress(
        completed=progress.completed,
        total=progress.total,
        percent=round(percent, 1),
        current_step=progress.current_step,
    )


def job_wait(run: run_pb2.Run) -> JobWait | None:
    """None where it does not wait."""
    if not run.HasField("wait"):
        return None
    wait = run.wait
    is_told = wait.HasField("estimated_seconds")
    return JobWait(
        position=wait.position,
        blocked_by=wait.blocked_by,
        estimated_seconds=wait.estimated_seconds if is_told else None,
        estimated_low_seconds=wait.estimated_low_seconds if is_told else None,
        estimated_high_seconds=wait.estimated_high_seconds if is_told else None,
    )
