"""What a judge and people say of the answers of a run, one row per sample."""

from dataclasses import dataclass

import numpy as np

from services.results.statistics.columns import Array, Numbers, Values, numbered


@dataclass(frozen=True, slots=True)
class JudgedScores:
    """Verdicts and marks from 0 (wrong) to 1 (right), over rollouts and repeated verdicts averaged by sample.

    `marks[i]`: the mean mark of people, NaN where no answer to the sample is marked. `marked_verdicts[i]`:
    the judge's mean over the marked answers alone. `clusters` numbers what each sample belongs to; None where
    every sample is its own.
    """

    samples: Numbers
    verdicts: Array
    marks: Array
    marked_verdicts: Array
    clusters: Numbers | None = None

    @property
    def is_marked(self) -> Array:
        """1 where a sample has a mark, else 0."""
        return np.isfinite(self.marks).astype(np.float64)

    @property
    def mark_count(self) -> int:
        """Marked samples."""
        return int(self.is_marked.sum())

    def only(self, rows: Numbers) -> "JudgedScores":
        clusters = None if self.clusters is None else self.clusters[rows]
        return JudgedScores(
            self.samples[rows], self.verdicts[rows], self.marks[rows], self.marked_verdicts[rows], clusters
        )


def judged_scores(
    samples: Numbers, verdicts: Array, marks: Array, clusters: Numbers | None = None
) -> JudgedScores:
    """From one row per answer or, where verdicts are repeated, per verdict; rows of a sample in any order.

    Rows without a verdict (NaN) are left out, with their marks: the judge has said nothing that a mark could
    correct.
    """
    has_verdict = np.isfinite(verdicts)
    order = np.flatnonzero(has_verdict)[np.argsort(samples[has_verdict], kind="stable")]
    numbers = numbered(samples[order])
    rows, judged, marked = np.bincount(numbers), verdicts[order], marks[order]
    has_mark = np.isfinite(marked)
    marked_rows = np.bincount(numbers, has_mark, len(rows))

    def mean_over(of: Array, counts: Values) -> Array:
        means = np.full(len(rows), np.nan)
        np.divide(np.bincount(numbers, of, len(rows)), counts, out=means, where=counts > 0)
        return means

    first_rows = order[np.flatnonzero(np.diff(numbers, prepend=-1))]
    return JudgedScores(
        samples[first_rows],
        mean_over(judged, rows.astype(np.float64)),
        mean_over(np.where(has_mark, marked, 0.0), marked_rows),
        mean_over(np.where(has_mark, judged, 0.0), marked_rows),
        None if clusters is None else clusters[first_rows],
    )


@dataclass(frozen=True, slots=True)
class Confusion:
    """Marked samples by what people say and what the judge says; a verdict of a half counts half to each."""

    right_as_right: float
    right_as_wrong: float
    wrong_as_right: float
    wrong_as_wrong: float

    @property
    def error_rate(self) -> float | None:
        """Share of marked samples that the judge has wrong."""
        wrong = self.right_as_wrong + self.wrong_as_right
        total = wrong + self.right_as_right + self.wrong_as_wrong
        return wrong / total if total else None


def confusion(scores: JudgedScores) -> Confusion:
    is_marked = scores.is_marked > 0
    marks, verdicts = scores.marks[is_marked], scores.marked_verdicts[is_marked]
    return Confusion(
        float(marks @ verdicts),
        float(marks @ (1 - verdicts)),
        float((1 - marks) @ verdicts),
        float((1 - marks) @ (1 - verdicts)),
    )
