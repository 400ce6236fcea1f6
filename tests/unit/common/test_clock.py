"""The time of a server counts, and not that of the machine."""

from datetime import timedelta

from services.common.clock import ServerClock, SystemClock


def test_a_clock_goes_by_what_it_learned_of_its_server() -> None:
    clock, server = ServerClock(), SystemClock().now() - timedelta(hours=4)
    assert abs(clock.machine_ahead_seconds) < 1
    clock.learn(server)
    assert server <= clock.now() < server + timedelta(minutes=1)
    assert 4 * 3600 <= clock.machine_ahead_seconds < 4 * 3600 + 60
    assert abs(clock.monotonic() - SystemClock().monotonic()) < 60
