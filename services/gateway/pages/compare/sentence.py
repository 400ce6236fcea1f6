"""The verdict of a comparison in one sentence, in points of its metric: percents where that is a share."""

from services.gateway.api.comparisons.conclusions import DifferenceShown, Lead, lead_of
from services.gateway.api.comparisons.routes import ComparisonShown
from services.gateway.pages import text

_BETTER = ("first_better", "second_better")


def verdict_sentence(shown: ComparisonShown) -> tuple[str, str]:
    """A conclusion and its evidence."""
    overall = [each for each in shown.differences if each.is_overall and each.metric == shown.metric]
    lead = lead_of(shown.models_compared, overall)
    if lead is None:
        remark = next((each.remark for each in shown.differences if each.remark), "")
        return "The data allow no verdict", f"({remark})" if remark else ""
    if len(shown.models_compared) == 2 or not lead.tied:
        return _of_the_gap(lead, shown.corrected_over)
    tied = ", ".join(lead.tied)
    what = f"{lead.best} has the highest figure, and cannot be distinguished from {tied}"
    return what, _evidence(lead.gap, lead.best, shown.corrected_over)


def _of_the_gap(lead: Lead, corrected_over: int) -> tuple[str, str]:
    best, next_one, gap = lead.best, lead.runner_up, lead.gap
    value, _ = gap.seen_from(best)
    evidence = _evidence(gap, best, corrected_over)
    if gap.verdict in _BETTER:
        return f"{best} is better than {next_one} by {points(abs(value or 0), gap)} points", evidence
    return f"{best} and {next_one} cannot be distinguished", evidence


def _evidence(gap: DifferenceShown, best: str, corrected_over: int) -> str:
    value, ends = gap.seen_from(best)
    parts = [f"difference {points(value, gap)}" if value is not None and gap.verdict not in _BETTER else ""]
    parts.append(f"95 % from {points(ends[0], gap)} to {points(ends[1], gap)}" if ends else "")
    p_value = gap.p_value if gap.adjusted_p_value is None else gap.adjusted_p_value
    if p_value is not None:
        how = f", Holm-corrected over {corrected_over} tests" if corrected_over > 1 else ""
        parts.append(f"{gap.test}, {p_text(p_value)}{how}")
    return f"({'; '.join(part for part in parts if part)})" if any(parts) else ""


def points(difference: float, of: DifferenceShown) -> str:
    """A difference of two figures as their metric is shown."""
    return text.score(difference, of.metric, of.first_mean, of.second_mean)


def p_text(p_value: float) -> str:
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.3f}"
