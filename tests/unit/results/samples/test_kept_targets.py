"""Targets that are kept within a bound, so that answers are scored without reading them again."""

import pytest

from services.results.samples.kept_targets import KeptTargets
from services.results.scoring.score import ScoringTarget

TARGET = ScoringTarget(texts=("a" * 190,))
# The bytes that are counted for it.
SIZE = 250 + 60 + 190


def kept(max_targets: int) -> KeptTargets:
    return KeptTargets(max_bytes=max_targets * SIZE)


def test_targets_are_found_by_set_and_position() -> None:
    targets, other = kept(9), ScoringTarget(choices=("a",), choice=0)
    targets.keep("set", [(0, TARGET), (3, other)])
    targets.keep("other", [(3, TARGET)])
    assert targets.find("set", [3, 1, 0]) == {3: other, 0: TARGET}
    assert targets.find("other", [0, 3]) == {3: TARGET}
    assert targets.find("unknown", [0]) == {}


def test_set_that_was_used_longest_ago_gives_way() -> None:
    targets = kept(3)
    for name in ("old", "used", "new"):
        targets.keep(name, [(0, TARGET)])
    targets.find("old", [0])
    targets.keep("newest", [(0, TARGET)])
    assert [len(targets.find(name, [0])) for name in ("old", "used", "new", "newest")] == [1, 0, 1, 1]


def test_set_that_grows_drops_others_and_then_keeps_its_first() -> None:
    targets = kept(3)
    targets.keep("other", [(0, TARGET)])
    targets.keep("large", [(at, TARGET) for at in range(9)])
    assert [*targets.find("large", range(9))] == [0, 1, 2]
    assert not targets.find("other", [0])
    targets.keep("next", [(0, TARGET)])
    assert targets.find("next", [0])


def test_sets_without_targets_take_no_place() -> None:
    targets = kept(2)
    targets.keep("set", [(0, TARGET)])
    for number in range(9):
        targets.keep(f"empty {number}", [])
    assert [*targets._sets] == ["set"]


def test_target_that_is_kept_again_is_counted_once() -> None:
    targets = kept(2)
    for _ in range(5):
        targets.keep("set", [(0, TARGET)])
    targets.keep("set", [(1, TARGET)])
    assert [*targets.find("set", range(2))] == [0, 1]


@pytest.mark.parametrize("field", ["choices", "texts", "wrong_texts", "choice_texts"])
def test_all_texts_of_a_target_count(field: str) -> None:
    targets = KeptTargets(max_bytes=1000)
    targets.keep("set", [(0, ScoringTarget(**{field: ("a" * 600,)})), (1, ScoringTarget(texts=("b",)))])  # type: ignore[arg-type]  # a field of texts
    assert [*targets.find("set", range(2))] == [0]
