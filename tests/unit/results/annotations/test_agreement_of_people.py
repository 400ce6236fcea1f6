"""How far people agree, from what each said of which answer."""

import numpy as np
import pytest

from proctor.values.judging.scale import YES_NO, read_scale
from services.results.annotations.annotation import AgreementMeasure, agreement_of
from services.results.annotations.question import Question
from services.results.statistics.judged.agreement import Scale, krippendorffs_alpha


def labels_of(**said: str) -> list[tuple[tuple[int, int], str, str]]:
    """By person a word whose letters are the grades of answers 0, 1, …; a dash for none."""
    return [((at, 0), user, one) for user, word in said.items() for at, one in enumerate(word) if one != "-"]


def test_one_person_agrees_with_nobody() -> None:
    found = agreement_of(labels_of(ann="1234"), read_scale("1-5").labels, is_ordinal=True)
    assert (found.raters, found.measure, found.agreement.value) == (1, None, None)


def test_the_alpha_of_three_people_is_that_of_their_grades() -> None:
    said = {"ann": "1234-21", "ben": "13342-1", "cem": "123-251"}
    found = agreement_of(labels_of(**said), read_scale("1-5").labels, is_ordinal=True)
    table = np.array([[np.nan if one == "-" else float(one) for one in word] for word in said.values()])
    assert found.measure is AgreementMeasure.KRIPPENDORFFS_ALPHA
    assert found.agreement == krippendorffs_alpha(table - 1, Scale.ORDINAL)
    assert found.agreement.value is not None
    nominal = agreement_of(labels_of(**said), read_scale("1-5").labels, is_ordinal=False)
    assert nominal.agreement.value == pytest.approx(krippendorffs_alpha(table, Scale.NOMINAL).value)
    assert nominal.agreement.value != pytest.approx(found.agreement.value)


def test_a_label_of_another_scale_is_left_out() -> None:
    said = [((0, 0), "ann", "yes"), ((0, 0), "ben", "3")]
    assert agreement_of(said, YES_NO.labels, is_ordinal=False).raters == 1


def test_a_question_is_the_same_for_judges_of_one_name_and_scale() -> None:
    one, other = (Question(run, "correctness", YES_NO.labels) for run in ("a", "b"))
    assert one.key == other.key == "correctness yes=1.0,no=0.0"
    assert Question("a", "correctness", read_scale("1-5").labels).is_of_numbers
    assert not one.is_of_numbers
