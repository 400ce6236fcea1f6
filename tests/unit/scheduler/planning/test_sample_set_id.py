"""Ids of sample sets grow with time."""

import time
from uuid import RFC_4122, UUID

from services.scheduler.planning.sample_set_id import new_sample_set_id


def test_it_is_a_uuid_of_version_7_that_tells_its_time() -> None:
    before = time.time_ns() // 1_000_000
    made = UUID(new_sample_set_id())
    assert (made.version, made.variant) == (7, RFC_4122)
    assert before <= made.int >> 80 <= time.time_ns() // 1_000_000


def test_those_of_one_millisecond_differ_and_later_ones_are_larger() -> None:
    made = [new_sample_set_id() for _ in range(1000)]
    assert len({*made}) == 1000
    times = [UUID(each).int >> 80 for each in made]
    assert times == sorted(times)
