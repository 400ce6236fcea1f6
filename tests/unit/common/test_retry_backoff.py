"""Pauses between tries of many clients at once."""

from services.common.nats.connection import RetryBackoff


def test_pauses_double_up_to_the_longest_and_begin_anew_after_a_success() -> None:
    backoff = RetryBackoff(1.0, 10.0)
    for _ in range(2):
        for bound in (1.0, 2.0, 4.0, 8.0, 10.0, 10.0):
            assert bound / 2 <= backoff.next() <= bound
        backoff.reset()


def test_clients_that_fail_together_do_not_ask_together() -> None:
    clients = [RetryBackoff(1.0, 10.0) for _ in range(1000)]
    at = [sum(client.next() for _ in range(3)) for client in clients]
    busiest = max(sum(second <= each < second + 0.5 for each in at) for second in range(8))
    assert busiest < 500
