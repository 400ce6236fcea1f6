"""A wait is random below a bound that doubles, and never longer than the longest."""

import pytest

from services.worker.rate_limits.backoff import Backoff

BACKOFF = Backoff(first_seconds=0.5, longest_seconds=20.0)


@pytest.mark.parametrize(("failures", "bound"), [(1, 0.5), (2, 1.0), (4, 4.0), (7, 20.0), (100_000, 20.0)])
def test_bound_doubles_up_to_the_longest(failures: int, bound: float) -> None:
    waits = [BACKOFF.seconds(failures) for _ in range(500)]
    assert 0 <= min(waits) < 0.2 * bound
    assert 0.8 * bound < max(waits) <= bound
