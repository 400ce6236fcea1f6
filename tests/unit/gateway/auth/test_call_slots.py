"""Slots of calls: for each user, for all of them, and by the bytes that bodies hold."""

import pytest

from services.gateway.auth.admission import CallSlots
from services.gateway.http.errors import GatewayFull, GatewayHoldsTooMuch, TooManyCalls


def slots(**given: int) -> CallSlots:
    return CallSlots(
        **{"max_calls": 4, "max_calls_per_user": 2, "max_bytes": 1200, "max_bytes_per_user": 100, **given}
    )


def test_user_has_so_many_slots_and_gets_them_back() -> None:
    some = slots()
    with some.slot("ann", 1), some.slot("ann", 1):
        with pytest.raises(TooManyCalls, match="2 calls"), some.slot("ann", 1):
            pass
        with some.slot("bob", 1):
            pass
    with some.slot("ann", 1):
        pass


def test_all_users_together_have_so_many_slots() -> None:
    some = slots(max_calls=2)
    with (
        some.slot("ann", 1),
        some.slot("bob", 1),
        pytest.raises(GatewayFull, match="2 calls in progress"),
        some.slot("carol", 1),
    ):
        pass


def test_bytes_of_a_user_are_bounded_but_for_a_single_request() -> None:
    some = slots()
    with (
        some.slot("ann", 1000),
        some.slot("bob", 60),
        some.slot("bob", 40),
        pytest.raises(TooManyCalls, match="100 bytes"),
        some.slot("ann", 1),
    ):
        pass


def test_bytes_of_all_users_are_bounded_but_for_a_single_request() -> None:
    some = slots()
    with some.slot("ann", 5000):
        with pytest.raises(GatewayHoldsTooMuch, match="1200 bytes"), some.slot("bob", 1):
            pass
        with some.slot("bob", 0):
            pass
    with some.slot("ann", 0), some.counted_bytes("ann", 1100), some.slot("bob", 100):
        pass


def test_slot_is_given_back_after_a_failure() -> None:
    some = slots(max_calls=1)
    for _ in range(3):
        with pytest.raises(KeyError), some.slot("ann", 1):
            raise KeyError
