"""Figures in words for people. What is undefined is a dash, never a number."""

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
