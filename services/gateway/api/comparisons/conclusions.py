"""What a comparison says, in sentences: significance and what to conclude."""

from collections.abc import Sequence

from services.gateway.api.comparisons.difference import Difference, Lead, Verdict


def significance_words(lead: Lead | None, corrected_over: int) -> str:
    """Of the gap between the first and the second."""
    if lead is None:
        return "undefined: no pair of runs has a figure"
    gap = lead.gap
    if gap.verdict is Verdict.UNDEFINED:
        return f"undefined: {gap.remark or 'the data allow no test'}"
    return _p_words(gap, corrected_over)


def recommendations(
    differences: Sequence[Difference], names: Sequence[str], suite: str, corrected_over: int
) -> list[str]:
    """Pair by pair: what is shown, what is not and what it would take, and what disturbs the figures."""
    return [
        sentence
        for over_all in differences
        if over_all.is_over_all
        for sentence in (
            _conclusion(over_all, names, suite, corrected_over),
            _by_task(over_all, differences, names),
            _disturbed(over_all, names),
        )
        if sentence
    ]


def _conclusion(each: Difference, names: Sequence[str], suite: str, corrected_over: int) -> str:
    first, second = names[each.first], names[each.second]
    on = f"on {suite} ({each.metric})"
    match each.verdict:
        case Verdict.FIRST_BETTER | Verdict.SECOND_BETTER:
            is_first = each.verdict is Verdict.FIRST_BETTER
            better, worse = (first, second) if is_first else (second, first)
            value, interval = each.seen_from(each.first if is_first else each.second)
            told = f"{better} is better than {worse} {on} by {_sized(value, interval)}"
            return f"{told}, {_p_words(each, corrected_over)}."
        case Verdict.NOT_SHOWN:
            told = f"The data cannot tell {first} and {second} apart {on}: the difference is "
            return f"{told}{_sized(each.value, each.interval)}. {_what_it_takes(each)}"
        case Verdict.UNDEFINED:
            return f"{first} and {second} cannot be compared {on}: {each.remark or 'the data allow no test'}."


def _what_it_takes(each: Difference) -> str:
    if each.smallest_detectable is None:
        return "That does not show them equal."
    shown = f"{each.pairs:,} pairs of answers would have shown a difference of {each.smallest_detectable:.4g}"
    needed = each.pairs_needed()
    if needed is None or needed <= each.pairs:
        return f"That does not show them equal: {shown} with a power of 80 %."
    more = f"to show one as small as {abs(each.value or 0):.2g}, about {needed:,} would be needed"
    return f"That does not show them equal: {shown} with a power of 80 %; {more}."


def _by_task(over_all: Difference, differences: Sequence[Difference], names: Sequence[str]) -> str:
    pair = (over_all.first, over_all.second)
    of_pair = [each for each in differences if each.task and (each.first, each.second) == pair]
    parts = []
    for verdict, place in ((Verdict.FIRST_BETTER, pair[0]), (Verdict.SECOND_BETTER, pair[1])):
        tasks = dict.fromkeys(each.task for each in of_pair if each.verdict is verdict)
        if tasks:
            parts.append(f"{names[place]} is better on {', '.join(tasks)}")
    return f"Task by task: {'; '.join(parts)}." if parts else ""


def _disturbed(each: Difference, names: Sequence[str]) -> str:
    parts = []
    if each.if_parsed is not None and each.value is not None:
        parts.append(
            f"unparsed answers count as wrong, without them the difference is {each.if_parsed:+z.4f} "
            f"instead of {each.value:+z.4f}"
        )
    if each.first_failed or each.second_failed:
        parts.append(
            f"the machinery failed on {each.first_failed} samples of the first and {each.second_failed} of "
            "the second, which are left out: retry what failed"
        )
    if not parts:
        return ""
    return f"{names[each.first]} against {names[each.second]}: {'; '.join(parts)}."


def _p_words(each: Difference, corrected_over: int) -> str:
    p_value = each.p_value if each.adjusted_p_value is None else each.adjusted_p_value
    if p_value is None:
        return "without a p-value"
    words = "p < 0.001" if p_value < 0.001 else f"p = {p_value:.3f}"
    if each.adjusted_p_value is None or corrected_over < 2:
        return f"{words} ({each.test})"
    return f"{words} ({each.test}, Holm-corrected over {corrected_over} tests)"


def _sized(value: float | None, interval: tuple[float, float] | None) -> str:
    if value is None:
        return "undefined"
    return (
        f"{value:z.4f}"
        if interval is None
        else f"{value:z.4f} (95 % interval {interval[0]:z.4f} to {interval[1]:z.4f})"
    )
