"""What people said of answers, how far they are, and how far they agree."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from proctor.values.contract_enum import ContractEnum
from services.results.outcomes.outcome import OutcomeKey
from services.results.statistics.judged.agreement import Agreement, Scale, cohens_kappa, krippendorffs_alpha

MAX_COMMENT_CHARACTERS = 2000
MAX_RATERS = 10
DEFAULT_RATERS = 2


@dataclass(frozen=True, slots=True)
class Annotation:
    """`label` is "" and `score` None where the person could not tell."""

    key: OutcomeKey
    user: str
    label: str
    score: float | None
    comment: str
    annotated_at: datetime


@dataclass(frozen=True, slots=True)
class AnnotationCounts:
    """Answers of a run that are no failures, and of them those that are annotated: by anyone, by two or more,
    by the caller. `drawn`: those that stand before the first one in the random order that is not."""

    answers: int
    annotated: int
    annotated_twice: int
    own: int
    drawn: int


class AgreementMeasure(ContractEnum):
    """How agreement is measured, with the number of the contract."""

    COHENS_KAPPA = "cohens_kappa", 1
    KRIPPENDORFFS_ALPHA = "krippendorffs_alpha", 2


@dataclass(frozen=True, slots=True)
class RaterAgreement:
    """`raters`: people who have given a label. The measure is None of fewer than two."""

    raters: int
    measure: AgreementMeasure | None
    agreement: Agreement


def agreement_of(
    labels: Sequence[tuple[OutcomeKey, str, str]], scale: Mapping[str, float], *, is_ordinal: bool
) -> RaterAgreement:
    """`labels`: answer, person and label; those of no label of the `scale` are left out."""
    places = {label: place for place, label in enumerate(scale)}
    known = [(key, user, places[label]) for key, user, label in labels if label in places]
    users = {user: row for row, user in enumerate(sorted({user for _, user, _ in known}))}
    units = {key: column for column, key in enumerate(sorted({key for key, _, _ in known}))}
    ratings = np.full((len(users), len(units)), np.nan)
    for key, user, place in known:
        ratings[users[user], units[key]] = place
    if len(users) < 2:  # agreement takes two
        return RaterAgreement(len(users), None, Agreement(0))
    if len(users) == 2:
        return RaterAgreement(2, AgreementMeasure.COHENS_KAPPA, cohens_kappa(ratings[0], ratings[1]))
    alpha = krippendorffs_alpha(ratings, Scale.ORDINAL if is_ordinal else Scale.NOMINAL)
    return RaterAgreement(len(users), AgreementMeasure.KRIPPENDORFFS_ALPHA, alpha)
