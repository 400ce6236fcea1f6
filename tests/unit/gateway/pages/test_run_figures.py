"""Which figures of a run have their place on the scale of its page."""

import pytest

from proctor.v1 import run_pb2, summary_pb2
from services.gateway.pages.runs.figures_view import figures_view


def drawn(*metrics: tuple[str, float]) -> list[str]:
    """Metrics of one task that are drawn."""
    figures = [
        summary_pb2.MetricFigure(metric=name, mean=mean, ci_low=mean - 0.1, ci_high=mean + 0.1, n=9)
        for name, mean in metrics
    ]
    task = summary_pb2.TaskSummary(task="one", metrics=figures)
    view = figures_view(run_pb2.Run(), summary_pb2.RunSummary(tasks=[task]))
    return [row.metric for row in view.tasks if view.is_drawn(row)]


@pytest.mark.parametrize("unparsed", [0, 5, 6, 100])
def test_more_than_five_percent_of_unparsed_answers_come_with_a_warning(unparsed: int) -> None:
    view = figures_view(run_pb2.Run(), summary_pb2.RunSummary(answered=100, unparsed=unparsed))
    assert view.unparsed_rate == unparsed / 100
    sentence = f"{unparsed}.0% of the answers could not be parsed"
    assert (view.warning.startswith(sentence), bool(view.warning)) == (unparsed > 5, unparsed > 5)


def test_every_share_is_drawn_and_of_other_units_only_the_first_metric() -> None:
    assert drawn(("mcc", 0.1), ("acc", 0.6), ("perplexity", 12.0)) == ["mcc", "acc"]
    assert drawn(("bleu_max", 0.4), ("bleu_acc", 0.6)) == ["bleu_max"]
    assert drawn(("perplexity", 12.0), ("acc", 0.6)) == ["perplexity"]


def test_the_headline_of_a_run_is_that_of_lists_and_leaderboards() -> None:
    acc, mcc = (summary_pb2.MetricFigure(metric=name, mean=0.9) for name in ("acc", "mcc"))
    tasks = [summary_pb2.TaskSummary(task=f"of_{each.metric}", metrics=[each]) for each in (mcc, acc)]
    whole = summary_pb2.GroupSummary(group="glue", tasks=["of_mcc", "of_acc"], metrics=[acc, mcc])
    headline = figures_view(run_pb2.Run(), summary_pb2.RunSummary(tasks=tasks, groups=[whole])).headline
    assert headline is not None
    assert headline.metric == "acc"
    # No figure of one task stands for several.
    assert figures_view(run_pb2.Run(), summary_pb2.RunSummary(tasks=tasks)).headline is None
