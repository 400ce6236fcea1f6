"""Which containers a worker finds left behind, whatever its own clock shows."""

import os

import pytest

from services.worker.sandboxes.docker.owners import is_left, labels, time_of

NOW = 1_000_000.0
ELSEWHERE = {"proctor.sandbox.owner": "another machine.1.1"}
MINE = labels({})
MACHINE = MINE["proctor.sandbox.owner"].split(".")[0]
# A process of this number has started at another time than that.
DEAD = {"proctor.sandbox.owner": f"{MACHINE}.{os.getpid()}.1"}


def listed(owner: dict[str, str] | None, state: str, age: float) -> dict[str, object]:
    return {"Labels": owner, "State": state, "Created": NOW - age}


@pytest.mark.parametrize(
    ("owner", "state", "age", "expected"),
    [
        (MINE, "created", 9999, False),
        (MINE, "running", 9999, False),
        (DEAD, "created", 0, True),
        (DEAD, "running", 0, True),
        # It ends by itself, with the connection of its worker.
        (ELSEWHERE, "running", 10**9, False),
        (ELSEWHERE, "paused", 10**9, False),
        (ELSEWHERE, "created", 100, False),
        (ELSEWHERE, "created", 200, True),
        (ELSEWHERE, "configured", 200, True),
        (ELSEWHERE, "exited", 200, True),
        # The engine's clock was set back.
        (ELSEWHERE, "created", -3600, False),
        (None, "created", 200, True),
    ],
)
def test_left_behind_is_what_a_dead_worker_made_or_what_was_not_started_for_long(
    owner: dict[str, str] | None, state: str, age: float, *, expected: bool
) -> None:
    assert is_left(listed(owner, state, age), NOW) is expected


def test_the_clock_is_that_of_the_engine() -> None:
    assert time_of({"SystemTime": "2026-11-23T13:00:00.123456789Z"}) == pytest.approx(1795438800.123456)
    assert time_of({"SystemTime": "2026-11-23T14:00:00+01:00"}) == 1795438800
    # Nothing that may still be started is old then.
    assert time_of({}) == time_of({"SystemTime": "soon"}) == 0.0
