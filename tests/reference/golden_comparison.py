"""Comparison of figures made here with those of lm-evaluation-harness for the same task."""

from collections.abc import Mapping, Sequence

import pytest

from services.results.outcomes.outcome import ScoredOutcome
from services.results.statistics.figure import BOOTSTRAP, Figure
from services.scheduler.suites.rendering.sample import RenderedSample
from tests.reference.golden_reference import GoldenTask

_NO_SCORES = {"doc_id", "arguments", "target"}
# Two bootstraps of 1,000 resamples differ by some per cent; a mean's error is exact.
MONTE_CARLO = 0.12


def assert_same_questions(samples: Sequence[RenderedSample], golden: GoldenTask) -> None:
    """Context, continuations and target, byte for byte."""
    assert len(samples) == len(golden["docs"])
    for sample, doc in zip(samples, golden["docs"], strict=True):
        assert sample.doc_id == doc["doc_id"]
        assert [[sample.prompt.as_text, choice] for choice in sample.choices] == doc["arguments"]
        assert _target(sample, as_text=isinstance(doc["target"], str)) == doc["target"]


def _target(sample: RenderedSample, *, as_text: bool) -> object:
    """Tasks that name the right choice by its text have it without the delimiter."""
    index = sample.target.choice
    assert index is not None
    return sample.choices[index].removeprefix(" ") if as_text else index


def assert_same_scores(outcomes: Sequence[ScoredOutcome], golden: GoldenTask) -> None:
    compared = 0
    for outcome, doc in zip(outcomes, golden["docs"], strict=True):
        metrics = doc.keys() - _NO_SCORES
        compared += len(metrics)
        assert {metric: _as_golden(outcome.scores[metric]) for metric in metrics} == {
            metric: doc[metric] for metric in metrics
        }
    assert compared >= len(outcomes)


def _as_golden(value: object) -> object:
    """The golden files hold a predicted label as text."""
    return [value[0], str(value[1])] if isinstance(value, tuple) else value


def assert_same_figures(figures: Mapping[str, Figure], golden: GoldenTask) -> None:
    results = golden["results"]
    metrics = [key.removesuffix(",none") for key in results if key.endswith(",none") and "_stderr" not in key]
    assert metrics
    for metric in metrics:
        ours = figures[metric]
        assert ours.n == len(golden["docs"])
        assert ours.mean == pytest.approx(results[f"{metric},none"], abs=1e-9)
        assert_same_error(ours, results[f"{metric}_stderr,none"])


def assert_same_error(ours: Figure, stderr: float | str, monte_carlo: float = MONTE_CARLO) -> None:
    if stderr == "N/A":
        # The reference has no error for an aggregation of the task's own (cb's f1).
        return
    relative = monte_carlo if ours.interval_method == BOOTSTRAP else 0.0
    assert ours.stderr == pytest.approx(stderr, rel=relative, abs=1e-9)
