"""Ratings of models from verdicts on pairs of their answers: Bradley-Terry with ties and covariates."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from services.results.statistics.columns import Array, Numbers, numbered
from services.results.statistics.intervals import NORMAL_975
from services.results.statistics.paired.difference_estimate import LEVEL, holm

# Points of Elo: 400 are odds of ten to one.
POINTS = 400 / math.log(10)
# Half a win and half a loss of each model against an average one: ratings stay finite.
_PSEUDO_WEIGHT = 0.5
_MAX_STEPS, _CONVERGED = 100, 1e-10


@dataclass(frozen=True, slots=True)
class Matches:
    """Row i: models `first[i]` and `second[i]`, numbered from 0, met; `result[i]` is 1, 0, or 0.5 for a tie.

    `covariates` (matches, covariates), first minus second, explain verdicts by something else than models,
    such as length: None without. `clusters`: matches over one prompt; None where each has its own.
    """

    first: Numbers
    second: Numbers
    result: Array
    covariates: Array | None = None
    clusters: Numbers | None = None


@dataclass(frozen=True, slots=True)
class Ratings:
    """In points of Elo around a mean of 0, by model; `covariance` (models, models) is cluster-robust, and
    `inverse_information` is that of the likelihood alone. The larger of the two variances counts: where all
    pairs of two models end alike, the first one is almost 0.

    `tie`: ν of Davidson, the odds of a tie between equal models to a win. `effects` of the covariates are
    logarithms of odds for each unit, with `effect_errors`.
    """

    points: Array
    covariance: Array
    tie: float
    effects: Array
    effect_errors: Array
    inverse_information: Array

    def interval(self, model: int) -> tuple[float, float]:
        """95 %, of one rating by itself."""
        half = NORMAL_975 * math.sqrt(self._variance(model))
        return float(self.points[model] - half), float(self.points[model] + half)

    def p_value(self, first: int, second: int) -> float:
        """Two-sided, that two models are equal (Wald)."""
        variance = self._variance(first, second)
        difference = abs(float(self.points[first] - self.points[second]))
        return float(2 * ndtr(-difference / math.sqrt(variance))) if variance > 0 else 1.0

    def _variance(self, first: int, second: int | None = None) -> float:
        """Of a rating, or of the difference of two."""
        contrast = np.zeros(len(self.points))
        contrast[first] = 1
        if second is not None:
            contrast[second] = -1
        return max(float(contrast @ one @ contrast) for one in (self.covariance, self.inverse_information))


def rate(matches: Matches, models: int) -> Ratings:
    """Maximum likelihood (Davidson 1970): a win, a tie and a loss are as exp(η / 2) : ν : exp(−η / 2).

    η is the difference of the ratings and what the covariates add. Errors are a sandwich over clusters (White
    1982; Liang & Zeger 1986).
    """
    design = _design(matches, models)
    coefficients = _fitted(design, matches.result, models)
    scores, information = _derivatives(design, matches.result, coefficients, models)
    bread = np.linalg.pinv(information)
    clusters = np.arange(len(design)) if matches.clusters is None else numbered(matches.clusters)
    sums = np.zeros((int(clusters.max(initial=0)) + 1, scores.shape[1]))
    np.add.at(sums, clusters, scores)
    count = len(sums)
    covariance = bread @ (sums.T @ sums) @ bread * (count / max(1, count - 1))
    # Only differences between models are known: those to their mean are shown.
    centred = np.eye(models) - 1 / models
    return Ratings(
        POINTS * centred @ coefficients[:models],
        POINTS**2 * centred @ covariance[:models, :models] @ centred,
        math.exp(coefficients[-1]),
        coefficients[models:-1],
        np.sqrt(np.maximum(np.diag(covariance), np.diag(bread))[models:-1]),
        POINTS**2 * centred @ bread[:models, :models] @ centred,
    )


def tied_ranks(ratings: Ratings) -> Sequence[int]:
    """By model, from 1: a model shares the rank of the leader of that rank unless their test tells them apart
    at 5 %, corrected by Holm over all pairs, as on the leaderboard."""
    order = np.argsort(-ratings.points, kind="stable").tolist()
    pairs = [(one, other) for at, one in enumerate(order) for other in order[at + 1 :]]
    adjusted = dict(zip(pairs, holm([ratings.p_value(*pair) for pair in pairs]), strict=True))
    ranks, leader, rank = [0] * len(order), order[0], 1
    for place, model in enumerate(order, start=1):
        if model != leader and (adjusted[leader, model] or 0.0) <= LEVEL:
            leader, rank = model, place
        ranks[model] = rank
    return ranks


def _design(matches: Matches, models: int) -> Array:
    """What is multiplied by the coefficients, but for the tie's: (matches, models + covariates)."""
    rows = np.arange(len(matches.first))
    design = np.zeros((len(rows), models))
    design[rows, matches.first] += 1
    design[rows, matches.second] -= 1
    return design if matches.covariates is None else np.hstack([design, matches.covariates])


def _fitted(design: Array, results: Array, models: int) -> Array:
    """Newton's method: the likelihood is concave, so that any maximum is the one."""
    coefficients = np.zeros(design.shape[1] + 1)
    for _ in range(_MAX_STEPS):
        scores, information = _derivatives(design, results, coefficients, models)
        gradient = scores.sum(axis=0)
        gradient[:models] -= _PSEUDO_WEIGHT * np.tanh(coefficients[:models] / 2)
        # Log-ν has half a tie and half a win too: without any tie it would be minus infinity.
        chance = 1 / (1 + math.exp(-coefficients[-1]))
        gradient[-1] += _PSEUDO_WEIGHT * (1 - 2 * chance)
        step = np.linalg.pinv(information) @ gradient
        coefficients = coefficients + step * min(1.0, 2 / max(1e-300, float(np.abs(step).max())))
        if np.abs(step).max() < _CONVERGED:
            break
    return coefficients


def _derivatives(design: Array, results: Array, coefficients: Array, models: int) -> tuple[Array, Array]:
    """Scores of each match (matches, coefficients), and the information with that of the pseudo matches."""
    half = design @ coefficients[:-1] / 2
    weights = np.exp(np.stack([half, np.full(len(half), coefficients[-1]), -half], axis=1))
    win, tie, loss = (weights / weights.sum(axis=1, keepdims=True)).T
    is_tie = results == 0.5  # a tie by definition
    of_pair = (np.where(is_tie, 0.0, 2 * results - 1) - (win - loss)) / 2
    scores = np.hstack([design * of_pair[:, np.newaxis], (is_tie - tie)[:, np.newaxis]])
    # Covariances of (±1/2 for a win or a loss, 1 for a tie).
    of_win, of_both, of_tie = (win + loss - (win - loss) ** 2) / 4, -(win - loss) * tie / 2, tie * (1 - tie)
    information = np.zeros((scores.shape[1], scores.shape[1]))
    information[:-1, :-1] = design.T @ (design * of_win[:, np.newaxis])
    information[:-1, -1] = information[-1, :-1] = design.T @ of_both
    information[-1, -1] = of_tie.sum()
    at = np.arange(models)
    information[at, at] += _PSEUDO_WEIGHT * (1 - np.tanh(coefficients[:models] / 2) ** 2) / 2
    chance = 1 / (1 + math.exp(-coefficients[-1]))
    information[-1, -1] += 2 * _PSEUDO_WEIGHT * chance * (1 - chance)
    return scores, information
