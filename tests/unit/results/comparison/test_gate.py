"""Gates: what passes, fails and stays open, and how often by mistake."""

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
    adjusted_wald,
    difference_of_means,
    observed_means,
    stderr_of_mean,
)
from services.results.statistics.paired.pairs import unit_sums
from tests.fakes.results.paired_samples import right_or_wrong, scores_of

PASS, FAIL, INCONCLUSIVE = GateVerdict.PASS, GateVerdict.FAIL, GateVerdict.INCONCLUSIVE
TASKS = 5


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


def distance(kind: str, tests: int, pairs: int = 600) -> float:
    """What a gate states as `detectable`, over the spread that is drawn."""
    draw, spread = DRAW[kind]
    if kind == "graded":
        estimate = draw(np.random.default_rng(3), 200_000, 0.0, spread)
        assert estimate.stderr is not None
        one = DifferenceEstimate(
            pairs,
            difference=0.0,
            stderr=estimate.stderr * (200_000 / pairs) ** 0.5,
            degrees_of_freedom=pairs - 1,
        )
    else:
        half = round(pairs * spread / 2)
        one = judged(half, half, pairs)
    tasks = gated(*(difference(one, f"t{at}") for at in range(tests)))
    assert tasks[0].decision.detectable is not None
    return tasks[0].decision.detectable


def check_rates(kind: str, repetitions: int, tolerance: float, pairs: int = 600) -> None:
    """Mistakes at the edge and between equal runs, and power at the stated distance."""

    def share(drops: list[float], wanted: GateVerdict, margin: float = 0.01) -> float:
        return rate(kind, repetitions, drops, wanted, margin=margin, pairs=pairs)

    assert share([0.01] * TASKS, FAIL) <= 0.05 + tolerance
    assert share([0.01], PASS) <= 0.05 + tolerance
    # Equal runs are at the edge of the strictest margin.
    assert share([0.0] * TASKS, FAIL, margin=0.0) <= 0.05 + tolerance
    assert share([0.0] * TASKS, FAIL) <= 0.01 + tolerance
    worse = [0.01 + distance(kind, TASKS, pairs), *[0.0] * (TASKS - 1)]
    assert share(worse, FAIL) == pytest.approx(0.8, abs=0.02 + tolerance)
    equal = share([0.0], PASS, margin=distance(kind, 1, pairs))
    assert equal == pytest.approx(0.8, abs=0.02 + tolerance)


@pytest.mark.parametrize("kind", DRAW)
def test_mistakes_and_power_are_those_that_are_stated(kind: str) -> None:
    check_rates(kind, 200, tolerance=0.05)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", DRAW)
def test_mistakes_and_power_over_thousands_of_gates(kind: str) -> None:
    check_rates(kind, 2_000, tolerance=0.01, pairs=2_000)


def test_the_spread_of_the_drawn_tasks_is_as_stated() -> None:
    _, stderr = adjusted_wald(30, 30, 600)
    assert distance("judged", 1) == pytest.approx((1.6449 + 0.8416) * stderr, rel=1e-3)
