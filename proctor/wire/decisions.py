"""The decision of a run that stopped early, as a sentence: the same on every page and in every answer."""

from proctor.v1 import run_pb2
from proctor.values.comparison import Decision, DecisionVerdict
from proctor.wire.values import DECISION


def decision_sentence(run: run_pb2.Run) -> str:
    """Empty for a run that did not stop early."""
    if not run.HasField("decision"):
        return ""
    wanted, decision = run.order.until_decided, DECISION.from_proto(run.decision)
    models = [run.order.model, wanted.against_model]
    first, base = reversed(models) if wanted.is_base else models
    failed = (
        f" The machinery failed on {decision.failed:,} further samples, whose difference may be any."
        if decision.failed
        else ""
    )
    interval = f"{_points(decision.low)} to {_points(decision.high)} points"
    held = f"holds with a chance of {_level(decision.alpha)} whenever it is looked at"
    return (
        f"Stopped early after {decision.pairs:,} pairs: {_shown(first, base, decision)}. "
        f"The interval of the difference, {interval}, {held}.{failed}"
    )


def _shown(first: str, base: str, decision: Decision) -> str:
    if decision.verdict is DecisionVerdict.EQUIVALENT:
        return f"{first} and {base} differ by less than {decision.margin_points:g} points"
    by = "" if decision.difference is None else f" by {_points(abs(decision.difference))} points"
    return f"{first} is {decision.verdict} than {base}{by}"


def _level(alpha: float) -> str:
    """Never 1, as a chance of so many digits would be rounded to."""
    return f"{1 - alpha:.4g}" if alpha >= 0.0001 else f"1 - {alpha:.1g}"


def _points(share: float) -> str:
    """Never 0 for an end that is not: which side it is on is what was decided."""
    points = 100 * share
    return f"{points:.1f}" if not points or abs(points) >= 0.05 else f"{points:.1g}"
