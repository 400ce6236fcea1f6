"""Scores against cost or time: which models no other beats, and where they are drawn."""

from itertools import pairwise

import pytest

from proctor.v1 import leaderboard_pb2, summary_pb2
from services.gateway.pages.leaderboard.pareto import ParetoView, pareto_view
from services.gateway.pages.leaderboard.rows import entry_row


def view(
    against: str,
    *models: tuple[float, float | None],
    currency: str = "EUR",
    less_is_better: bool = False,
) -> ParetoView:
    """Models a, b, c, … with their scores, and what 1,000 answers or one cost them."""
    rows, summaries = [], []
    for number, (score, paid) in enumerate(models):
        entry = leaderboard_pb2.LeaderboardEntry(model=f"vllm/{'abcdef'[number]}", run_id=str(number))
        entry.figure.mean = score
        rows.append(entry_row(entry))
        summary = summary_pb2.RunSummary(answered=500)
        if paid is not None and against == "cost":
            summary.cost, summary.price.currency = paid / 2, currency
        if paid is not None and against == "time":
            summary.timing.total.p50 = paid
        summaries.append(summary)
    return pareto_view(against, rows, summaries, less_is_better=less_is_better)


def names(found: ParetoView, *, is_best: bool) -> str:
    return "".join(point.row.model[-1] for point in found.points if point.is_best is is_best)


def test_best_are_those_that_no_other_beats_on_both() -> None:
    found = view("cost", (0.9, 4.0), (0.7, 1.0), (0.6, 2.0), (0.9, 5.0), (0.7, 1.0))
    assert [point.paid for point in found.points] == [1.0, 1.0, 2.0, 4.0, 5.0]
    # Neither of two equal ones beats the other.
    assert names(found, is_best=True) == "bea"
    assert names(found, is_best=False) == "cd"
    assert found.currency == "EUR"


def test_where_less_is_better_the_lowest_is_best_and_the_line_leads_down() -> None:
    found = view("cost", (9.0, 4.0), (20.0, 1.0), (30.0, 2.0), (15.0, 1.0), less_is_better=True)
    assert names(found, is_best=True) == "da"
    assert names(found, is_best=False) == "bc"
    assert [point.row.model[-1] for point in found.points] == ["d", "b", "c", "a"]
    heights = [y for _, y, _, _ in found.steps]
    assert heights == sorted(heights)


def test_model_without_a_price_or_with_one_in_another_currency_is_left_out_by_name() -> None:
    found = view("cost", (0.9, None), (0.7, 1.0))
    assert (found.left_out, names(found, is_best=True)) == (["vllm/a"], "b")
    assert not view("time", (0.9, None)).points


@pytest.mark.parametrize(("paid", "is_logarithmic"), [((1.0, 3.0), False), ((0.01, 3.0), True)])
def test_positions_stay_inside_the_drawing_and_grow_with_what_is_paid(
    paid: tuple[float, float], *, is_logarithmic: bool
) -> None:
    found = view("time", (0.5, paid[0]), (0.6, paid[1]))
    first, second = found.points
    assert 10 <= first.x < second.x <= 96
    assert 6 <= second.y < first.y <= 88
    ratios = {round(b.value / a.value, 6) for a, b in pairwise(found.paid_ticks) if a.value}
    assert (ratios == {10.0}) is is_logarithmic


def test_line_leads_from_each_best_model_to_the_next() -> None:
    found = view("time", (0.5, 1.0), (0.6, 2.0))
    first, second = found.points
    assert found.steps[:2] == [
        (first.x, first.y, second.x, first.y),
        (second.x, first.y, second.x, second.y),
    ]
    assert found.steps[-1][2:] == (96.0, second.y)
