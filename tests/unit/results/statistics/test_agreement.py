"""Agreement of raters: published worked examples, and other implementations."""

import numpy as np
import pytest
from statsmodels.stats.inter_rater import cohens_kappa as kappa_of_statsmodels

from services.results.statistics.columns import Array
from services.results.statistics.judged.agreement import Agreement, Scale, cohens_kappa, krippendorffs_alpha

# Fleiss, Levin & Paik 2003, "Statistical methods for rates and proportions", table 18.1: 100 diagnosed twice.
DIAGNOSES = np.array([[75, 1, 4], [5, 4, 1], [0, 0, 10]])
_ = np.nan
# Krippendorff 2011, "Computing Krippendorff's alpha-reliability", section C: four observers, twelve units.
OBSERVERS = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
        [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
    ]
)


def of_table(table: Array) -> tuple[Array, Array]:
    rows, columns = np.indices(table.shape)
    counts = table.ravel().astype(np.int64)
    return np.repeat(rows.ravel(), counts).astype(float), np.repeat(columns.ravel(), counts).astype(float)


def test_kappa_is_that_of_the_published_example_and_its_error_that_of_statsmodels() -> None:
    found = cohens_kappa(*of_table(DIAGNOSES))
    reference = kappa_of_statsmodels(DIAGNOSES)
    assert found.value == pytest.approx(0.68, abs=0.005)
    assert found.value == pytest.approx(reference.kappa)
    assert found.stderr == pytest.approx(reference.std_kappa)
    assert found.units == 100
    assert found.ci_low == pytest.approx(reference.kappa_low)


@pytest.mark.parametrize("units", [3, 7, 19, 31])
def test_kappa_has_no_interval_where_its_error_is_rounding(units: int) -> None:
    varied: Array = np.arange(units, dtype=np.float64) % 3
    assert cohens_kappa(varied, varied) == Agreement(units, 1.0)
    # One of them always says the same.
    assert cohens_kappa(varied, np.zeros(units)) == Agreement(units, 0.0)


@pytest.mark.parametrize(("scale", "value"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_is_that_of_the_published_example(scale: str, value: float) -> None:
    found = krippendorffs_alpha(OBSERVERS, Scale(scale))
    assert found.value == pytest.approx(value, abs=0.0005)
    # The last unit has one rating.
    assert found.units == 11
    assert found.ci_low is not None
    assert found.ci_high is not None
    assert found.ci_low < value <= found.ci_high


def test_the_interval_of_alpha_covers() -> None:
    """Two raters who give the truth with a chance of 0.6 and else guess: alpha is 0.36."""
    generator, covered = np.random.default_rng(3), 0
    for _run in range(150):
        truth = generator.integers(2, size=120)
        ratings = np.where(generator.random((2, 120)) < 0.6, truth, generator.integers(2, size=(2, 120)))
        found = krippendorffs_alpha(ratings.astype(float), Scale.NOMINAL)
        assert found.ci_low is not None
        assert found.ci_high is not None
        covered += found.ci_low <= 0.36 <= found.ci_high
    assert covered / 150 >= 0.88


def test_what_says_nothing_of_agreement_is_undefined() -> None:
    same, none = np.ones(5), np.full(5, _)
    assert cohens_kappa(same, same) == Agreement(5)
    assert cohens_kappa(same, none) == Agreement(0)
    assert krippendorffs_alpha(np.stack([same, none]), Scale.NOMINAL) == Agreement(0)
    assert krippendorffs_alpha(np.stack([same, same]), Scale.INTERVAL) == Agreement(5)
    varied = np.array([0.0, 1.0, 1.0])
    assert krippendorffs_alpha(np.stack([varied, varied]), Scale.ORDINAL).value == 1.0
    assert cohens_kappa(varied, varied).value == 1.0
