"""What the scores of an answer are told by: the number of its sample, its rollout, metric to score."""

from collections.abc import Mapping

from services.results.scores.answer import ScoreValue

ScoredRow = tuple[int, int, Mapping[str, ScoreValue]]
"""Sample, rollout and scores of an answer."""
