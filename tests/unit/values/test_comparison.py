"""The order of samples: stored runs rest on it, so it stays what it is. And margins in words."""

from proctor.values.comparison import points_text, sample_order


def test_the_order_of_a_seed_is_the_same_in_all_versions_and_in_both_runs() -> None:
    assert sample_order(7, 12) == [0, 2, 5, 7, 4, 3, 11, 10, 9, 1, 6, 8]
    assert sample_order(7, 12) != sample_order(8, 12)
    assert sample_order(7, 0) == []


def test_every_sample_has_one_place() -> None:
    assert sorted(sample_order(3, 1000)) == list(range(1000))


def test_one_point_is_no_plural() -> None:
    assert [points_text(each) for each in (0, 0.5, 1, 2)] == ["0 points", "0.5 points", "1 point", "2 points"]
