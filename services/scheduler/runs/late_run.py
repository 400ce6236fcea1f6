"""Runs that are out of time: by their completion window where they have one, else by the limit of running."""

from datetime import datetime, timedelta

from services.scheduler.runs.run import Run, RunError


def lateness(run: Run, now: datetime) -> RunError | None:
    """Why the run ends now, if it does. A window closes over a run that waits as over one that runs."""
    due = run.expires_at or run.deadline
    if due is None or now < due:
        return None
    limit, retry = _window(run) if run.expires_at else (f"{run.time_limit} (hours:minutes:seconds)", "asks")
    what = f"Resource limits exceeded (time): the run took longer than {limit}"
    return RunError("DEADLINE_REACHED", f"{what}. What was recorded stays; a retry {retry} the rest.")


def _window(run: Run) -> tuple[str, str]:
    seconds = run.order.completion_window_seconds
    length = f" of {timedelta(seconds=seconds)} (hours:minutes:seconds)" if seconds else ""
    return f"its completion window{length}, waiting included", "opens a new window and asks"
