"""Gates: what passes, fails and stays open, and how often by mistake."""

import math
import os

import numpy as np
import pytest

from proctor.values.comparison import GateVerdict
from services.results.comparison.answer_pairs import PairTally
from services.results.comparison.comparison import Difference
from services.results.comparison.gate import Gate, GatedTask, GateRules, gated_tasks
from services.results.statistics.paired.difference_estimate import (
    PAIRED_T,
    DifferenceEstimate,
    undefined,
    with_interval,
)
from services.results.statistics.paired.mean_difference import (
    difference_of_means,
    observed_means,
    stderr_of_mean,
)
from services.results.statistics.paired.pairs import unit_sums
from tests.fakes.results.paired_samples import found_share, right_or_wrong, scores_of

PASS, FAIL, INCONCLUSIVE = GateVerdict.PASS, GateVerdict.FAIL, GateVerdict.INCONCLUSIVE
TASKS = 5
# 10,000 for the figures of docs/reference/statistics.md.
GATES = int(os.environ.get("PROCTOR_GATES", "2000"))


def judged(gained: int, lost: int, pairs: int) -> DifferenceEstimate:
    rest = pairs - gained - lost
    return difference_of_means(right_or_wrong(both=rest, only_first=gained, only_second=lost, neither=0))


def difference(estimate: DifferenceEstimate, task: str = "t", **given: object) -> Difference:
    return Difference(0, 1, task, "acc", estimate, **given)  # type: ignore[arg-type]  # its fields


def gated(
    *differences: Difference, samples: int = 0, rules: GateRules | None = None, **rule: float
) -> list[GatedTask]:
    counts = {one.task: samples or one.estimate.pairs for one in differences}
    return gated_tasks(differences, counts, rules or GateRules(**rule))


def verdict(tasks: list[GatedTask], *reasons: str) -> GateVerdict:
    return Gate("suite", (), reasons, (), (), tasks).verdict


def test_many_like_answers_pass_many_lost_ones_fail_and_few_decide_nothing() -> None:
    passing, failing, few = (
        gated(difference(judged(*counts))) for counts in ((20, 20, 20_000), (0, 400, 4_000), (3, 4, 100))
    )
    assert [verdict(each) for each in (passing, failing, few)] == [PASS, FAIL, INCONCLUSIVE]
    [one] = few
    assert one.pairs_needed is not None
    assert one.reason == f"100 pairs decide nothing at this margin; about {one.pairs_needed:,} would"
    more = gated(difference(judged(3, 4, one.pairs_needed)))
    assert more[0].pairs_needed is None


def test_no_drop_is_decided_where_less_is_better() -> None:
    [one] = gated(difference(judged(0, 400, 4_000), less_is_better=True))
    assert one.decision.verdict is INCONCLUSIVE
    assert one.reason == "of acc less is better, and the margin is a drop that is accepted"


@pytest.mark.parametrize("counts", [(20, 20, 20_000), (0, 400, 4_000), (3, 4, 100), (10, 60, 3_000)])
def test_the_corrected_limits_stand_beside_the_margin_as_the_verdict_says(
    counts: tuple[int, int, int],
) -> None:
    tasks = gated(*(difference(judged(*counts), f"t{at}") for at in range(3)), difference(judged(1, 9, 500)))
    for task in tasks:
        low, high = task.decision.lower_limit, task.decision.upper_limit
        assert low is not None
        assert high is not None
        assert (low > -task.margin) is (task.decision.verdict is PASS)
        assert (high < -task.margin) is (task.decision.verdict is FAIL)


def test_more_tasks_need_more_to_pass_and_to_fail() -> None:
    """The same pairs decide alone, and not among others."""
    for counts in ((40, 40, 2_000), (12, 38, 1_000)):
        alone = gated(difference(judged(*counts)))
        among = gated(
            difference(judged(*counts)), *(difference(judged(9, 9, 300), f"t{at}") for at in "abcdefgh")
        )
        assert alone[0].decision.verdict is not INCONCLUSIVE
        assert among[0].decision.verdict is INCONCLUSIVE


def test_one_task_that_fails_is_enough_and_one_that_is_open_keeps_from_passing() -> None:
    good, bad, few = judged(20, 20, 20_000), judged(0, 400, 4_000), judged(3, 4, 100)
    assert verdict(gated(difference(good, "a"), difference(bad, "b"), difference(few, "c"))) is FAIL
    assert verdict(gated(difference(good, "a"), difference(few, "c"))) is INCONCLUSIVE
    assert verdict(gated(difference(good, "a"), difference(good, "b"))) is PASS
    assert verdict(gated(difference(good)), "Run x ended as failed.") is INCONCLUSIVE
    assert verdict([]) is INCONCLUSIVE


@pytest.mark.parametrize("counts", [(20, 20, 20_000), (0, 2_000, 20_000)])
@pytest.mark.parametrize(
    ("tally", "samples"),
    [
        (PairTally(first_failed=300), 20_300),
        (PairTally(second_failed=300), 20_300),
        # Nothing was recorded for them.
        (PairTally(), 20_300),
        (PairTally(first_unparsed=1_100), 20_000),
        (PairTally(second_unparsed=1_100), 20_000),
    ],
)
def test_many_failures_or_unparsed_answers_decide_nothing(
    counts: tuple[int, int, int], tally: PairTally, samples: int
) -> None:
    [task] = gated(difference(judged(*counts), tally=tally), samples=samples)
    assert task.decision.verdict is INCONCLUSIVE
    assert task.reason
    [tolerant] = gated(
        difference(judged(*counts), tally=tally),
        samples=samples,
        max_failed_share=0.1,
        max_unparsed_share=0.1,
    )
    assert tolerant.decision.verdict is (PASS if counts[0] else FAIL)


def test_a_verdict_that_depends_on_unparsed_answers_is_none() -> None:
    tally = PairTally(first_unparsed=400)
    one = difference(judged(0, 400, 20_000), tally=tally, if_parsed=judged(0, 0, 19_600))
    [task] = gated(one)
    assert (task.decision.verdict, task.reason) == (
        INCONCLUSIVE,
        "it depends on answers that could not be parsed: without them pass",
    )


def test_without_a_test_there_is_a_reason_and_no_verdict() -> None:
    [task] = gated(difference(undefined(0, "no sample has a figure in both runs")))
    assert (task.decision.verdict, task.reason) == (INCONCLUSIVE, "no sample has a figure in both runs")


@pytest.mark.parametrize(
    ("metric", "margin"), [("acc", 0.02), ("mcc", 0.02), ("bleu_max", 2.0), ("score", 0.02)]
)
def test_points_are_those_of_pages(metric: str, margin: float) -> None:
    one = Difference(0, 1, "t", metric, judged(1, 1, 100))
    assert gated(one, margin_points=2.0)[0].margin == margin


def drawn(generator: np.random.Generator, pairs: int, drop: float, differing: float) -> DifferenceEstimate:
    """A task of right and wrong answers whose true difference is −drop."""
    lost, gained = (differing + drop) / 2, (differing - drop) / 2
    counts = generator.multinomial(pairs, [gained, lost, 1 - gained - lost])
    return judged(int(counts[0]), int(counts[1]), pairs)


def drawn_scores(
    generator: np.random.Generator, pairs: int, drop: float, spread: float
) -> DifferenceEstimate:
    """The same of graded answers, half of which are the same in both runs."""
    moved = generator.normal(-2 * drop, spread, pairs) * (generator.random(pairs) < 0.5)
    scores = scores_of(moved, np.zeros(pairs))
    units = unit_sums(scores)
    estimate = with_interval(observed_means(scores), stderr_of_mean(units), pairs - 1)
    return DifferenceEstimate(
        pairs,
        difference=estimate.difference,
        stderr=estimate.stderr,
        test=PAIRED_T,
        degrees_of_freedom=pairs - 1,
    )


DRAW = {"judged": (drawn, 0.1), "graded": (drawn_scores, 0.3)}


def rate(
    kind: str,
    repetitions: int,
    drops: list[float],
    wanted: GateVerdict,
    *,
    margin: float = 0.01,
    pairs: int = 600,
) -> float:
    """How often a gate over tasks with these drops has a verdict."""
    draw, spread = DRAW[kind]
    generator = np.random.default_rng(17)
    found = 0
    for _ in range(repetitions):
        estimates = [draw(generator, pairs, drop, spread) for drop in drops]
        tasks = gated(
            *(difference(each, f"t{at}") for at, each in enumerate(estimates)), margin_points=100 * margin
        )
        found += verdict(tasks) is wanted
    return found / repetitions


def as_spread(kind: str, pairs: int) -> DifferenceEstimate:
    """No difference, and the spread that is drawn."""
    draw, spread = DRAW[kind]
    if kind == "judged":
        half = round(pairs * spread / 2)
        return judged(half, half, pairs)
    estimate = draw(np.random.default_rng(3), 200_000, 0.0, spread)
    assert estimate.stderr is not None
    return DifferenceEstimate(
        pairs,
        difference=0.0,
        stderr=estimate.stderr * (200_000 / pairs) ** 0.5,
        degrees_of_freedom=pairs - 1,
    )


def distance(kind: str, tests: int, pairs: int = 600) -> float:
    """What a gate states as `detectable`."""
    tasks = gated(*(difference(as_spread(kind, pairs), f"t{at}") for at in range(tests)))
    assert tasks[0].decision.detectable is not None
    return tasks[0].decision.detectable


def needed(kind: str, margin: float) -> int:
    """What a gate states as `pairs_needed`."""
    [task] = gated(difference(as_spread(kind, 100)), margin_points=100 * margin)
    assert task.pairs_needed is not None
    return task.pairs_needed


def test_chances_of_right_and_wrong_answers_are_those_that_are_stated() -> None:
    """Counted over every outcome: a gate fails where the smallest p-value of five is at most a fifth of α."""
    for pairs in (600, 2_000):
        margin = 0.786 / pairs**0.5
        of = needed("judged", margin)
        counted = [
            failing(pairs, 0.0, [0.0] * TASKS),
            failing(pairs, 0.01, [0.0] * TASKS),
            failing(pairs, 0.01, [0.01] * TASKS),
            found_share(pairs, 0.045, 0.055, -0.01, 0.05),
            failing(pairs, 0.01, [0.01 + distance("judged", TASKS, pairs), *[0.0] * (TASKS - 1)]),
            found_share(of, 0.05, 0.05, -margin, 0.05),
        ]
        print(f"{pairs} pairs, in the order of rates: {counted}")  # noqa: T201  # shown by -s
        without_margin, with_margin, all_worse, passed, *powers = counted
        assert max(without_margin, all_worse, passed) <= 0.051
        assert with_margin <= 0.005
        assert powers == pytest.approx([0.8, 0.8], abs=0.01)


def failing(pairs: int, margin: float, drops: list[float]) -> float:
    """The chance that a gate of right and wrong answers fails, of which 10 % differ."""
    level = 0.05 / len(drops)
    open_ = [1 - found_share(pairs, (0.1 + drop) / 2, (0.1 - drop) / 2, margin, level) for drop in drops]
    return 1 - math.prod(open_)


def rates(kind: str, repetitions: int, pairs: int) -> dict[str, float]:
    """Mistakes at the edge and between equal runs, and power at what is stated."""

    def share(drops: list[float], wanted: GateVerdict, margin: float = 0.01, of: int = pairs) -> float:
        return rate(kind, repetitions, drops, wanted, margin=margin, pairs=of)

    worse = [0.01 + distance(kind, TASKS, pairs), *[0.0] * (TASKS - 1)]
    # Some 600 or 2,000 pairs.
    margin = {"judged": 0.786, "graded": 0.527}[kind] / pairs**0.5
    return {
        "equal runs, five tasks, no margin: fails": share([0.0] * TASKS, FAIL, margin=0.0),
        "equal runs, five tasks, margin of one point: fails": share([0.0] * TASKS, FAIL),
        "five tasks worse by the margin exactly: fails": share([0.01] * TASKS, FAIL),
        "one task worse by the margin exactly: passes": share([0.01], PASS),
        "one task of five worse by margin and stated distance: fails": share(worse, FAIL),
        "one task, equal runs, as many pairs as are needed: passes": share(
            [0.0], PASS, margin, needed(kind, margin)
        ),
    }


def check_rates(kind: str, repetitions: int, tolerance: float, pairs: int = 600) -> None:
    found = rates(kind, repetitions, pairs)
    print(f"{kind}, {pairs} pairs, {repetitions} gates each: {found}")  # noqa: T201  # shown by -s
    without_margin, with_margin, all_worse, passed, *powers = found.values()
    # Equal runs are at the edge of the strictest margin.
    assert max(without_margin, all_worse, passed) <= 0.05 + tolerance
    assert with_margin <= 0.01 + tolerance
    assert powers == pytest.approx([0.8, 0.8], abs=0.02 + tolerance)


@pytest.mark.parametrize("kind", DRAW)
def test_mistakes_and_power_are_those_that_are_stated(kind: str) -> None:
    check_rates(kind, 200, tolerance=0.05)


@pytest.mark.thorough
@pytest.mark.timeout(60 + GATES)
@pytest.mark.parametrize("pairs", [600, 2_000])
@pytest.mark.parametrize("kind", DRAW)
def test_mistakes_and_power_over_thousands_of_gates(kind: str, pairs: int) -> None:
    check_rates(kind, GATES, tolerance=0.01, pairs=pairs)
