"""What a comparison concludes: who leads, whether that is shown, and what it would take to show it."""

import dataclasses

import pytest

from proctor.values.comparison import Verdict
from services.gateway.api.comparisons.conclusions import Difference, lead_of, recommendations, significance

NAMES = ["vllm/a", "vllm/b", "vllm/c"]
UNDECIDED = Difference(
    first=0,
    second=1,
    task="",
    metric="acc",
    value=0.01,
    interval=(-0.01, 0.03),
    p_value=0.3,
    adjusted_p_value=0.6,
    test="stratified normal",
    pairs=400,
    smallest_detectable=0.04,
    first_failed=0,
    second_failed=0,
    if_parsed=None,
    verdict=Verdict.NOT_SHOWN,
    remark="",
)
SHOWN = dataclasses.replace(
    UNDECIDED,
    value=-0.1,
    interval=(-0.15, -0.05),
    adjusted_p_value=0.0004,
    verdict=Verdict.SECOND_BETTER,
)
UNDEFINED = dataclasses.replace(
    UNDECIDED, value=None, interval=None, verdict=Verdict.UNDEFINED, remark="only one pair"
)


def pair(first: int, second: int, value: float, verdict: Verdict) -> Difference:
    return dataclasses.replace(UNDECIDED, first=first, second=second, value=value, verdict=verdict)


def test_the_one_that_wins_most_pairs_leads_and_its_ties_are_named() -> None:
    lead = lead_of(
        3,
        [
            pair(0, 1, -0.1, Verdict.SECOND_BETTER),
            pair(0, 2, -0.2, Verdict.SECOND_BETTER),
            pair(1, 2, -0.01, Verdict.NOT_SHOWN),
        ],
    )
    assert lead is not None
    assert (lead.best, lead.runner_up, lead.tied) == (2, 1, (1,))
    assert lead.gap.seen_from(lead.best)[0] == 0.01


def test_a_difference_is_turned_for_who_looks_from_the_other_side() -> None:
    assert SHOWN.seen_from(0) == (-0.1, (-0.15, -0.05))
    assert SHOWN.seen_from(1) == (0.1, (0.05, 0.15))


def test_no_run_leads_where_no_pair_has_a_figure() -> None:
    assert lead_of(2, [UNDEFINED]) is None
    assert significance(None, 3) == "undefined: no pair of runs has a figure"


@pytest.mark.parametrize(
    ("difference", "corrected_over", "words"),
    [
        (UNDECIDED, 3, "p = 0.600 (stratified normal, Holm-corrected over 3 tests)"),
        (SHOWN, 3, "p < 0.001 (stratified normal, Holm-corrected over 3 tests)"),
        (UNDECIDED, 1, "p = 0.600 (stratified normal)"),
        (
            dataclasses.replace(UNDECIDED, adjusted_p_value=None, test="exact McNemar"),
            3,
            "p = 0.300 (exact McNemar)",
        ),
    ],
)
def test_significance_is_reported_with_its_test_and_correction(
    difference: Difference, corrected_over: int, words: str
) -> None:
    assert significance(lead_of(2, [difference]), corrected_over) == words


def test_gap_that_no_test_fits_is_undefined_and_says_why() -> None:
    untested = dataclasses.replace(UNDECIDED, verdict=Verdict.UNDEFINED, remark="only one pair")
    assert significance(lead_of(2, [untested]), 1) == "undefined: only one pair"


def test_a_shown_difference_is_described_from_the_side_of_the_better_one() -> None:
    [sentence] = recommendations([SHOWN], NAMES, "glue", 2)
    assert sentence == (
        "vllm/b is better than vllm/a on glue (acc) by 0.1000 (95 % interval 0.0500 to 0.1500), "
        "p < 0.001 (stratified normal, Holm-corrected over 2 tests)."
    )


def test_what_the_data_cannot_tell_says_how_many_pairs_could() -> None:
    [sentence] = recommendations([UNDECIDED], NAMES, "glue", 1)
    assert "no significant difference between vllm/a and vllm/b" in sentence
    assert "That does not prove them equal" in sentence
    assert "to show one as small as 0.01, about 6,400 would be needed" in sentence


@pytest.mark.parametrize("value", [0.0, 0.05])
def test_no_number_is_named_where_none_or_no_more_would_be_needed(value: float) -> None:
    [sentence] = recommendations([dataclasses.replace(UNDECIDED, value=value)], NAMES, "glue", 1)
    assert "would be needed" not in sentence


def test_an_undefined_difference_is_no_difference_but_a_reason() -> None:
    reported = recommendations([UNDEFINED], NAMES, "glue", 1)
    assert reported == ["vllm/a and vllm/b cannot be compared on glue (acc): only one pair."]


def test_tasks_that_are_decided_are_named_beside_the_whole() -> None:
    tasks = [
        dataclasses.replace(SHOWN, task="rte"),
        dataclasses.replace(UNDECIDED, task="sst2"),
        dataclasses.replace(SHOWN, task="cola", verdict=Verdict.FIRST_BETTER),
    ]
    reported = recommendations([*tasks, UNDECIDED], NAMES, "glue", 4)
    assert reported[1] == "Task by task: vllm/a is better on cola; vllm/b is better on rte."


def test_unparsed_and_failed_samples_say_what_they_do_to_the_figure() -> None:
    disturbed = dataclasses.replace(UNDECIDED, if_parsed=0.002, first_failed=3)
    _, sentence = recommendations([disturbed], NAMES, "glue", 1)
    assert "without them the difference is +0.0020 instead of +0.0100" in sentence
    assert "3 samples of the first and 0 of the second failed" in sentence


def test_a_difference_that_rounds_to_nothing_has_no_minus() -> None:
    hardly = dataclasses.replace(UNDECIDED, value=-0.00001, interval=(-0.01, 0.00999), if_parsed=-0.00002)
    [conclusion, disturbed] = recommendations([hardly], NAMES, "glue", 1)
    assert "the difference is 0.0000 (95 % interval -0.0100" in conclusion
    assert "the difference is +0.0000 instead of +0.0000" in disturbed
