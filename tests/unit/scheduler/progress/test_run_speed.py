"""How fast a run goes, and between which speeds it went."""

import pytest

from proctor.values.run import RunCounts, TaskCounts
from proctor.values.usage import TokenUsage
from services.scheduler.progress.run_speed import RunSpeed, SpeedMeter, TimeLeft, time_left


def counts(samples: int, tokens: int = 0) -> RunCounts:
    return RunCounts(1, (TaskCounts("task", samples),), usage=TokenUsage(completion_tokens=tokens))


def speed_after(*reports: tuple[float, int], now: float | None = None) -> RunSpeed | None:
    """Reports are a moment and the samples recorded until then, each of ten tokens."""
    marks = SpeedMeter()
    for at, samples in reports:
        marks.add(at, counts(samples, 10 * samples))
    return marks.speed(reports[-1][0] if now is None else now)


def test_generated_tokens_are_measured_over_the_same_seconds_as_samples() -> None:
    speed = speed_after((0, 0), (4, 20))
    assert speed is not None
    assert (speed.samples, speed.tokens) == (5, 50)


def test_before_there_is_a_stretch_it_may_go_half_or_twice_as_fast() -> None:
    assert speed_after((0, 0), (4, 20)) == RunSpeed(5, 50, fastest=10, slowest=2.5)


def test_nothing_is_distinguished_from_one_moment() -> None:
    assert speed_after((0, 10)) is None


def test_fastest_and_slowest_are_those_of_recent_stretches() -> None:
    speed = speed_after((0, 0), (5, 50), (10, 60), (20, 100))
    assert speed == RunSpeed(4, 40, fastest=10, slowest=2)


def test_stretch_in_which_nothing_came_grows_until_something_comes() -> None:
    speed = speed_after((0, 0), (5, 50), (10, 50), (15, 50), (25, 60), (30, 110), now=30)
    assert speed is not None
    assert speed.slowest == pytest.approx(0.5)
    assert speed.fastest == 10


def test_stretches_of_long_ago_count_no_more() -> None:
    recent = [(float(at), 50 + 2 * (at - 5)) for at in range(10, 200, 5)]
    speed = speed_after((0, 0), (5, 50), *recent)
    assert speed == RunSpeed(2, 20, fastest=2, slowest=2)


def test_pause_is_no_slow_stretch() -> None:
    speed = speed_after((0, 0), (5, 50), (1000, 50), (1005, 100))
    assert speed == RunSpeed(10, 100, fastest=10, slowest=10)


def test_later_epoch_is_measured_anew() -> None:
    marks = SpeedMeter()
    marks.add(0, counts(0))
    marks.add(5, counts(50))
    marks.clear()
    marks.add(6, counts(0))
    marks.add(8, counts(4))
    assert marks.speed(8) == RunSpeed(2, 0, fastest=4, slowest=1)


def test_time_left_is_reported_between_the_best_and_the_worst() -> None:
    assert time_left(100, RunSpeed(10, 0, fastest=20, slowest=5)) == TimeLeft(10, low=5, high=20)


@pytest.mark.parametrize("speed", [None, RunSpeed(0, 0, 3, 0)])
def test_the_time_left_is_unknown_while_nothing_comes(speed: RunSpeed | None) -> None:
    assert time_left(100, speed) is None
