"""Figures in words for people. What is undefined is a dash, never a number.
Runs in words for people: states, durations, counts.
"""

from proctor.v1 import run_pb2, summary_pb2

NONE = "–"


def mean_and_half_width(figure: summary_pb2.MetricFigure) -> str:
    if not figure.HasField("mean"):
        return NONE
    if not has_interval(figure):
        return f"{figure.mean:z.4f}"
    return f"{figure.mean:z.4f} ± {(figure.ci_high - figure.ci_low) / 2:.4f}"


def interval(figure: summary_pb2.MetricFigure) -> str:
    return f"{figure.ci_low:z.4f} to {figure.ci_high:z.4f}" if has_interval(figure) else NONE


def has_interval(figure: summary_pb2.MetricFigure) -> bool:
    return figure.HasField("ci_low") and figure.HasField("ci_high")


def scoring_word(method: run_pb2.ScoringMethod.ValueType) -> str:
    """Empty where there are no choices to score."""
    if method == run_pb2.SCORING_METHOD_UNSPECIFIED:
        return ""
    return run_pb2.ScoringMethod.Name(method).removeprefix("SCORING_METHOD_").lower()


def p_word(p_value: float) -> str:
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"


STATE_STYLES = {
    run_pb2.RUN_STATE_COMPLETED: "green",
    run_pb2.RUN_STATE_FAILED: "red",
    run_pb2.RUN_STATE_CANCELLED: "yellow",
    run_pb2.RUN_STATE_RUNNING: "cyan",
}


def state_word(state: run_pb2.RunState.ValueType) -> str:
    return run_pb2.RunState.Name(state).removeprefix("RUN_STATE_").lower()


def state_of_word(word: str) -> run_pb2.RunState.ValueType:
    """Raises ValueError for what is no state."""
    return run_pb2.RunState.Value(f"RUN_STATE_{word.upper()}")


def subject(run: run_pb2.Run) -> str:
    """What it is over: a suite, or a data set by its name."""
    return run.order.suite or run.dataset_name or run.order.dataset_id


def duration(seconds: float) -> str:
    """2.4 s, 1:05, 1:01:05."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def urgency(run: run_pb2.Run) -> str:
    """Said where it is not the highest: it may be lower than it was ordered with."""
    is_lowered = run.order.priority in (run_pb2.PRIORITY_NORMAL, run_pb2.PRIORITY_LOW)
    name = run_pb2.Priority.Name(run.order.priority).removeprefix("PRIORITY_").lower()
    return f", with priority {name}" if is_lowered else ""


def step(run: run_pb2.Run) -> str:
    """What happens now; why it waits while it does."""
    if run.state == run_pb2.RUN_STATE_PENDING and run.HasField("wait"):
        return _waiting(run.wait)
    if run.state in (run_pb2.RUN_STATE_FAILED, run_pb2.RUN_STATE_CANCELLED):
        return state_word(run.state)
    return run.progress.current_step or state_word(run.state)


def _waiting(wait: run_pb2.RunWait) -> str:
    why = f"waiting, number {wait.position} in the queue: {wait.blocked_by}"
    when = turn(wait)
    return f"{why}; starts in {when}" if when else why


def turn(wait: run_pb2.RunWait) -> str:
    """About when its turn comes, with the band; empty where nothing tells."""
    if not wait.HasField("estimated_seconds"):
        return ""
    low, high = duration(wait.estimated_low_seconds), duration(wait.estimated_high_seconds)
    told = duration(wait.estimated_seconds)
    return f"about {told}" if low == high else f"about {told} ({low} to {high})"


def pace(progress: run_pb2.RunProgress) -> str:
    """Rate and time left, as far as measured."""
    parts = []
    if progress.HasField("samples_per_second"):
        parts.append(f"{progress.samples_per_second:.1f} samples/s")
    if progress.tokens_per_second:
        parts.append(f"{progress.tokens_per_second:,.0f} tok/s")
    if progress.HasField("eta_seconds") and progress.completed < progress.total:
        parts.append(f"ETA {_time_left(progress)}")
    return " · ".join(parts)


def _time_left(progress: run_pb2.RunProgress) -> str:
    told = duration(progress.eta_seconds)
    low, high = duration(progress.eta_low_seconds), duration(progress.eta_high_seconds)
    has_band = progress.HasField("eta_low_seconds") and low != high
    return f"{told} ({low} to {high})" if has_band else told


def cost(run: run_pb2.Run) -> str:
    """Of what is recorded; empty where the model has no price."""
    has_cost = run.progress.HasField("cost")
    return f"cost {money(run.progress.cost, run.price.currency)}" if has_cost else ""


def money(amount: float, currency: str) -> str:
    return f"{amount:.6g} {currency}"


def failures(counts: dict[str, int]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in sorted(counts.items()) if count)


def elapsed_seconds(run: run_pb2.Run) -> float:
    """For which it was running, whatever it waited or was paused; 0 until it is finished."""
    if not run.HasField("finished_at"):
        return 0.0
    stay = run.finished_at.ToDatetime() - run.admitted_at.ToDatetime()
    return run.ran_seconds + (stay.total_seconds() if run.HasField("admitted_at") else 0.0)
