"""Conclusions of a comparison: who leads, whether that is shown, and what it would take to show it."""

import pytest

from proctor.values.comparison import Verdict
from services.gateway.api.comparisons.conclusions import (
    DEPENDS_ON_UNPARSED,
    DifferenceShown,
    lead_of,
    recommendations,
    significance,
)

UNDECIDED = DifferenceShown(
    first="vllm/a",
    second="vllm/b",
    task=None,
    metric="acc",
    first_mean=0.61,
    second_mean=0.6,
    difference=0.01,
    ci95=(-0.01, 0.03),
    p_value=0.3,
    adjusted_p_value=0.6,
    test="stratified normal",
    pairs=400,
    clusters=400,
    smallest_detectable=0.04,
    noise_floor=None,
    first_failed=0,
    second_failed=0,
    first_unparsed=0,
    second_unparsed=0,
    difference_if_parsed=None,
    verdict_if_parsed=None,
    depends_on_unparsed=False,
    only_first_right=22,
    only_second_right=18,
    verdict=Verdict.NOT_SHOWN,
    remark="",
    less_is_better=False,
)


def changed(original: DifferenceShown, **fields: object) -> DifferenceShown:
    return original.model_copy(update=fields)


SHOWN = changed(
    UNDECIDED,
    difference=-0.1,
    ci95=(-0.15, -0.05),
    adjusted_p_value=0.0004,
    verdict=Verdict.SECOND_BETTER,
)
UNDEFINED = changed(UNDECIDED, difference=None, ci95=None, verdict=Verdict.UNDEFINED, remark="only one pair")


def pair(first: str, second: str, difference: float, verdict: Verdict) -> DifferenceShown:
    return changed(UNDECIDED, first=first, second=second, difference=difference, verdict=verdict)


def test_the_one_that_wins_most_pairs_leads_and_its_ties_are_named() -> None:
    lead = lead_of(
        ["a", "b", "c"],
        [
            pair("a", "b", -0.1, Verdict.SECOND_BETTER),
            pair("a", "c", -0.2, Verdict.SECOND_BETTER),
            pair("b", "c", -0.01, Verdict.NOT_SHOWN),
        ],
    )
    assert lead is not None
    assert (lead.best, lead.runner_up, lead.tied) == ("c", "b", ["b"])
    assert lead.gap.seen_from(lead.best)[0] == 0.01


def test_a_difference_is_turned_for_who_looks_from_the_other_side() -> None:
    assert SHOWN.seen_from("vllm/a") == (-0.1, (-0.15, -0.05))
    assert SHOWN.seen_from("vllm/b") == (0.1, (0.05, 0.15))


def test_no_run_leads_where_no_pair_has_a_figure() -> None:
    assert lead_of(["vllm/a", "vllm/b"], [UNDEFINED]) is None
    assert significance(None, 3) == "undefined: no pair of runs has a figure"


@pytest.mark.parametrize(
    ("difference", "corrected_over", "words"),
    [
        (UNDECIDED, 3, "p = 0.600 (stratified normal, Holm-corrected over 3 tests)"),
        (SHOWN, 3, "p < 0.001 (stratified normal, Holm-corrected over 3 tests)"),
        (UNDECIDED, 1, "p = 0.600 (stratified normal)"),
        (
            changed(UNDECIDED, adjusted_p_value=None, test="exact McNemar"),
            3,
            "p = 0.300 (exact McNemar)",
        ),
    ],
)
def test_significance_is_reported_with_its_test_and_correction(
    difference: DifferenceShown, corrected_over: int, words: str
) -> None:
    assert significance(lead_of(["vllm/a", "vllm/b"], [difference]), corrected_over) == words


def test_gap_that_no_test_fits_is_undefined_and_says_why() -> None:
    untested = changed(UNDECIDED, verdict=Verdict.UNDEFINED, remark="only one pair")
    assert significance(lead_of(["vllm/a", "vllm/b"], [untested]), 1) == "undefined: only one pair"


def test_a_shown_difference_is_described_from_the_side_of_the_better_one() -> None:
    [sentence] = recommendations([SHOWN], "glue", 2)
    assert sentence == (
        "vllm/b is better than vllm/a on glue (acc) by 0.1000 (95 % interval 0.0500 to 0.1500), "
        "p < 0.001 (stratified normal, Holm-corrected over 2 tests)."
    )


def test_where_less_is_better_the_lower_figure_leads_and_is_better_by_what_it_is_lower() -> None:
    errors = changed(SHOWN, metric="wer", less_is_better=True, verdict=Verdict.FIRST_BETTER)
    lead = lead_of([errors.first, errors.second], [errors])
    assert lead is not None
    assert (lead.best, lead.runner_up) == ("vllm/a", "vllm/b")
    [sentence] = recommendations([errors], "speech", 1)
    assert sentence.startswith(
        "vllm/a is better than vllm/b on speech (wer, less is better) by 0.1000 (95 % interval 0.0500 to"
    )


def test_an_undecided_comparison_says_how_many_pairs_would_decide() -> None:
    [sentence] = recommendations([UNDECIDED], "glue", 1)
    assert "no significant difference between vllm/a and vllm/b" in sentence
    assert "That does not prove them equal" in sentence
    assert "to show one as small as 0.01, about 6,400 would be needed" in sentence


@pytest.mark.parametrize("value", [0.0, 0.05])
def test_no_number_is_named_where_none_or_no_more_would_be_needed(value: float) -> None:
    [sentence] = recommendations([changed(UNDECIDED, difference=value)], "glue", 1)
    assert "would be needed" not in sentence


def test_an_undefined_difference_is_no_difference_but_a_reason() -> None:
    reported = recommendations([UNDEFINED], "glue", 1)
    assert reported == ["vllm/a and vllm/b cannot be compared on glue (acc): only one pair."]


def test_tasks_that_are_decided_are_named_beside_the_whole() -> None:
    tasks = [
        changed(SHOWN, task="rte"),
        changed(UNDECIDED, task="sst2"),
        changed(SHOWN, task="cola", verdict=Verdict.FIRST_BETTER),
    ]
    reported = recommendations([*tasks, UNDECIDED], "glue", 4)
    assert reported[1] == "Task by task: vllm/a is better on cola; vllm/b is better on rte."


def test_unparsed_and_failed_samples_say_what_they_do_to_the_figure() -> None:
    disturbed = changed(UNDECIDED, difference_if_parsed=0.002, first_failed=3)
    _, sentence = recommendations([disturbed], "glue", 1)
    assert "without them the difference is +0.0020 instead of +0.0100" in sentence
    assert "3 samples of the first and 0 of the second failed" in sentence


def test_a_verdict_that_depends_on_unparsed_answers_says_so() -> None:
    depending = changed(SHOWN, depends_on_unparsed=True, verdict_if_parsed=Verdict.NOT_SHOWN)
    assert DEPENDS_ON_UNPARSED in recommendations([depending], "glue", 1)[-1]
    lead = lead_of([depending.first, depending.second], [depending])
    assert significance(lead, 1).endswith(DEPENDS_ON_UNPARSED)
    assert DEPENDS_ON_UNPARSED not in significance(lead_of([SHOWN.first, SHOWN.second], [SHOWN]), 1)


def test_a_difference_that_rounds_to_nothing_has_no_minus() -> None:
    hardly = changed(UNDECIDED, difference=-0.00001, ci95=(-0.01, 0.00999), difference_if_parsed=-0.00002)
    [conclusion, disturbed] = recommendations([hardly], "glue", 1)
    assert "the difference is 0.0000 (95 % interval -0.0100" in conclusion
    assert "the difference is +0.0000 instead of +0.0000" in disturbed
