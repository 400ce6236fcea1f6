"""Several judges as one figure, and where one of them leans."""

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.stats import t

from services.results.statistics.columns import Array
from services.results.statistics.judged.panel import (
    Lean,
    PanelFigure,
    length_bias,
    mean_lean,
    others_of,
    panel_figure,
)

NAN = np.nan


def test_of_labels_the_majority_counts_and_of_grades_the_mean() -> None:
    verdicts = np.array([[1.0, 0.0, 1.0, NAN], [1.0, 0.0, 0.0, NAN], [0.0, NAN, NAN, NAN]])
    samples = np.arange(4)
    labels = panel_figure(verdicts, samples, is_of_numbers=False)
    assert labels.answers == 3
    assert labels.mean == pytest.approx((1 + 0 + 0.5) / 3)
    grades = panel_figure(verdicts, samples, is_of_numbers=True)
    assert grades.mean == pytest.approx((2 / 3 + 0 + 0.5) / 3)
    assert grades.spread == pytest.approx((np.std([1, 1, 0]) + 0 + 0.5) / 3)
    assert labels.agreement.units == 3


def test_the_interval_is_students_over_samples() -> None:
    generator = np.random.default_rng(5)
    verdicts = generator.random((3, 40))
    found = panel_figure(verdicts, np.arange(40) // 2, is_of_numbers=True)
    means = verdicts.mean(axis=0).reshape(20, 2).mean(axis=1)
    low, high = sm.stats.DescrStatsW(means).tconfint_mean()
    assert interval_of(found) == pytest.approx((low, high))
    assert panel_figure(np.full((2, 3), NAN), np.arange(3), is_of_numbers=True) == PanelFigure()


def test_the_others_are_all_judges_but_one_or_those_that_are_allowed() -> None:
    verdicts = np.array([[1.0, 0.0], [0.5, NAN], [0.0, NAN]])
    assert others_of(verdicts, 0).tolist() == pytest.approx([0.25, NAN], nan_ok=True)
    assert others_of(verdicts, 2, [0]).tolist() == [1.0, 0.0]


def interval_of(found: Lean | PanelFigure) -> tuple[float, float]:
    assert found.ci_low is not None
    assert found.ci_high is not None
    return found.ci_low, found.ci_high


def planted(generator: np.random.Generator, slope: float, answers: int = 200) -> tuple[Array, Array, Array]:
    """Verdicts, references and lengths; two answers to each sample share an error."""
    lengths = np.round(2 ** generator.uniform(3, 9, answers))
    references = generator.random(answers)
    shared = np.repeat(generator.normal(0, 0.1, answers // 2), 2)
    verdicts = references + slope * np.log2(lengths) + shared + generator.normal(0, 0.1, answers)
    return verdicts, references, lengths


def test_a_length_bias_is_the_slope_of_statsmodels_with_clustered_errors() -> None:
    verdicts, references, lengths = planted(np.random.default_rng(3), 0.03)
    samples = np.arange(200) // 2
    found = length_bias(verdicts, references, lengths, samples)
    design = sm.add_constant(np.log2(lengths))
    fitted = sm.OLS(verdicts - references, design).fit(
        cov_type="cluster", cov_kwds={"groups": samples, "use_correction": False}
    )
    assert found.value == pytest.approx(fitted.params[1])
    expected = t.ppf(0.975, 98) * fitted.bse[1] * np.sqrt(99 / 98)
    low, high = interval_of(found)
    assert (high - low) / 2 == pytest.approx(expected)


def test_the_interval_of_a_length_bias_covers_it_and_finds_a_planted_one() -> None:
    generator, covered, seen = np.random.default_rng(11), 0, 0
    for _ in range(400):
        found = length_bias(*planted(generator, 0.03, 120), np.arange(120) // 2)
        low, high = interval_of(found)
        covered += low <= 0.03 <= high
        seen += low > 0
    assert 0.92 <= covered / 400 <= 0.98
    assert seen / 400 >= 0.95


def test_too_few_samples_or_one_length_have_no_slope() -> None:
    same = np.full(20, 8.0)
    assert length_bias(np.zeros(20), np.zeros(20), same, np.arange(20)) == Lean(20)
    assert length_bias(np.zeros(5), np.zeros(5), np.linspace(1, 5, 5), np.arange(5)) == Lean(5)


def test_how_much_more_a_judge_gives_is_a_mean_over_samples() -> None:
    generator = np.random.default_rng(2)
    references, verdicts = generator.random(30), generator.random(30)
    found = mean_lean(verdicts, references, np.arange(30))
    low, high = sm.stats.DescrStatsW(verdicts - references).tconfint_mean()
    assert found.value == pytest.approx((low + high) / 2)
    assert interval_of(found) == pytest.approx((low, high))
    assert mean_lean(np.array([NAN]), np.array([0.5]), np.arange(1)) == Lean()
