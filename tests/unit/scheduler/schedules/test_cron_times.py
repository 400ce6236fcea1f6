"""Times of cron expressions: across the changes of clocks, in zones, and those that are refused."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.scheduler.schedules.cron_times import CronTimes, times_problem

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
VIENNA = "Europe/Vienna"


def times_of(times: CronTimes, after: datetime, count: int) -> list[str]:
    found = []
    for _ in range(count):
        after = times.next_after(after)
        found.append(after.strftime("%m-%d %H:%M"))
    return found


def test_times_are_those_of_the_zone() -> None:
    assert times_of(CronTimes("0 3 * * *", VIENNA), NOON, 2) == ["11-21 02:00", "11-22 02:00"]
    assert times_of(CronTimes("0 3 * * MON", "UTC"), NOON, 2) == ["11-23 03:00", "11-30 03:00"]


def test_what_falls_into_the_gap_of_spring_comes_at_its_end() -> None:
    """On 2026-03-29 02:30 does not exist in Vienna."""
    before = datetime(2026, 3, 27, 12, tzinfo=UTC)
    assert times_of(CronTimes("30 2 * * *", VIENNA), before, 3) == [
        "03-28 01:30",
        "03-29 01:00",
        "03-30 00:30",
    ]


def test_a_fixed_hour_comes_once_where_the_clocks_go_back() -> None:
    """On 2026-10-25 02:30 comes twice in Vienna; a time of every hour comes each time."""
    before = datetime(2026, 10, 24, 12, tzinfo=UTC)
    assert times_of(CronTimes("30 2 * * *", VIENNA), before, 2) == ["10-25 00:30", "10-26 01:30"]
    hourly = CronTimes("30 * * * *", VIENNA)
    night = datetime(2026, 10, 24, 23, 40, tzinfo=UTC)
    assert times_of(hourly, night, 3) == ["10-25 00:30", "10-25 01:30", "10-25 02:30"]


CRONS = ("* * * * *", "*/7 * * * *", "30 2 * * *", "0 3 * * MON", "15 1,2,3 * * *", "0 0 1 * *")
ZONES = ("UTC", VIENNA, "America/Havana", "Asia/Kathmandu", "Australia/Lord_Howe", "Antarctica/Troll")
# Among them those at which the clocks of these zones are put back in 2026, by up to two hours.
MOMENTS = st.datetimes(datetime(2024, 1, 1), datetime(2028, 1, 1), timezones=st.just(UTC)) | st.builds(  # noqa: DTZ001  # bounds are
    lambda change, minutes: change + timedelta(minutes=minutes),
    st.sampled_from(
        [
            datetime(2026, 10, 25, 1, tzinfo=UTC),
            datetime(2026, 11, 1, 5, tzinfo=UTC),
            datetime(2026, 4, 4, 15, tzinfo=UTC),
        ]
    ),
    st.floats(-200, 200),
)


@given(st.sampled_from(CRONS), st.sampled_from(ZONES), MOMENTS)
@settings(deadline=None)
def test_latest_time_is_the_one_before_the_next(cron: str, zone: str, moment: datetime) -> None:
    times = CronTimes(cron, zone)
    first = times.next_after(moment - timedelta(days=40))
    latest = times.latest_from(first, moment)
    assert first <= latest <= moment < times.next_after(moment)
    # Nothing lies between them.
    assert times.next_after(latest) == times.next_after(moment)
    assert times.latest_from(latest, latest) == latest


def test_next_time_comes_after_a_moment_of_an_hour_that_comes_again() -> None:
    again = datetime(2026, 10, 25, 1, 10, tzinfo=UTC)
    assert times_of(CronTimes("30 2 * * *", VIENNA), again, 1) == ["10-26 01:30"]
    assert times_of(CronTimes("*/20 * * * *", VIENNA), again, 2) == ["10-25 01:20", "10-25 01:40"]


@pytest.mark.parametrize(
    ("cron", "zone", "said"),
    [
        ("* * * *", "UTC", "five fields"),
        ("* * * * * *", "UTC", "five fields"),
        ("61 * * * *", "UTC", "bad minute"),
        ("0 0 31 2 *", "UTC", "bad day-of-month"),
        ("0 0 30 2 */8", "UTC", "bad day-of-month"),
        ("a b c d e", "UTC", "bad minute"),
        ("", "UTC", "five fields"),
        ("0 3 * * *", "Vienna", "time_zone is 'Vienna'"),
        ("0 3 * * *", "../../etc/passwd", "IANA"),
        ("0 " * 60, "UTC", "five fields"),
    ],
)
def test_what_names_no_time_is_refused(cron: str, zone: str, said: str) -> None:
    problem = times_problem(CronTimes(cron, zone), NOON)
    assert problem
    assert said in problem.sentence, problem.sentence


def test_what_comes_is_taken() -> None:
    for cron in ("* * * * *", "0 3 * * MON", "0 3 L * *", "0 0 29 2 *", "*/15 8-18 * * MON-FRI"):
        assert times_problem(CronTimes(cron, "UTC"), NOON) is None
    assert CronTimes("0 0 29 2 *", "UTC").next_after(NOON) - NOON > timedelta(days=365)
