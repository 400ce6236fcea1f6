"""A peer has stalled by the time in which it took nothing, however much it has been sent."""

from services.gateway.server.connections import UnsentBytes


def test_peer_that_takes_nothing_has_stalled_since_it_was_sent_something() -> None:
    unsent = UnsentBytes()
    assert unsent.stalled_seconds(0, 5.0) == 0
    unsent.begin(1000, 10.0)
    assert unsent.stalled_seconds(1000, 25.0) == 15


def test_each_byte_that_is_taken_is_progress() -> None:
    unsent = UnsentBytes()
    unsent.begin(1_000_000, 0.0)
    # A byte within each 29 s, for hours.
    for taken in range(1, 1000):
        assert unsent.stalled_seconds(1_000_000 - taken, taken * 29.0) == 0
    assert unsent.stalled_seconds(1_000_000 - 999, 999 * 29.0 + 30) == 30


def test_bytes_that_are_added_are_no_progress() -> None:
    unsent = UnsentBytes()
    unsent.begin(1000, 0.0)
    assert unsent.stalled_seconds(1025, 30.0) == 30


def test_peer_that_took_all_has_not_stalled() -> None:
    unsent = UnsentBytes()
    unsent.begin(1000, 0.0)
    unsent.end()
    assert unsent.stalled_seconds(0, 100.0) == 0
