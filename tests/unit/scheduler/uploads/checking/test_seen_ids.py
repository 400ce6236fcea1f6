"""Ids that come twice are found, in memory and from disk alike."""

import random

import pytest

from services.scheduler.uploads.checking.seen_ids import Duplicate, Duplicates, SeenIds
from tests.fakes.thorough_cases import first_cases


def found(names: list[str], keep: int = 20, run_ids: int = 2**18) -> Duplicates:
    ids = SeenIds(keep, run_ids)
    for line, name in enumerate(names, 1):
        ids.add(name, line)
    duplicates = ids.duplicates()
    ids.close()
    return duplicates


def counted(names: list[str], keep: int) -> Duplicates:
    first: dict[str, int] = {}
    again = [
        Duplicate(line, first[name])
        for line, name in enumerate(names, 1)
        if first.setdefault(name, line) != line
    ]
    return Duplicates(tuple(again[:keep]), len(again))


@first_cases(2, "run_ids", [1, 2, 7, 100, 10_000])
@pytest.mark.parametrize("different", [1, 3, 50, 3000, 10**9])
def test_runs_on_disk_find_what_memory_finds(run_ids: int, different: int) -> None:
    draw = random.Random(different)
    names = [f"id {draw.randrange(different)}" for _ in range(2000)]
    assert found(names, run_ids=run_ids) == counted(names, 20)


def test_texts_with_the_same_bytes_in_another_width_are_not_the_same() -> None:
    # "ab" and this letter are the same two bytes as CPython holds them.
    assert found(["ab", "扡"]).count == 0


def test_first_of_all_lines_is_named_also_where_a_run_repeats_an_id() -> None:
    names = ["a", "b", "c", "d", "c", "c"]
    assert found(names, run_ids=3).first == (Duplicate(5, 3), Duplicate(6, 3))


def test_only_so_many_are_named() -> None:
    assert found(["a"] * 50, keep=2, run_ids=3) == Duplicates((Duplicate(2, 1), Duplicate(3, 1)), 49)
