"""How much of a run may be on the wire."""

import pytest

from services.scheduler.dispatch.dispatch_shards import CreditRule, capacity_of, worth_sending

RULE = CreditRule(min_shards=4, max_shards=256, seconds_ahead=1.0)


def test_floor_holds_before_any_worker_is_there() -> None:
    assert RULE.credit(capacity=0, runs=1, samples_per_second=None) == 4


def test_credit_is_twice_what_the_workers_ask_at_a_time() -> None:
    assert RULE.credit(capacity=1024, runs=1, samples_per_second=None) == 32


def test_ten_workers_that_ask_little_at_a_time_have_two_shards_each() -> None:
    assert RULE.credit(capacity_of({8: 10}), runs=1, samples_per_second=None) == 20


def test_each_worker_has_two_shards_when_they_have_grown_too() -> None:
    assert RULE.credit(capacity_of({64: 10}, 128), runs=1, samples_per_second=None, shard_samples=128) == 20
    assert RULE.credit(capacity_of({256: 10}, 128), runs=1, samples_per_second=None, shard_samples=128) == 40


@pytest.mark.parametrize("workers", [1, 10])
def test_run_of_small_shards_has_as_many_samples_as_one_whose_shards_have_grown(workers: int) -> None:
    capacity = capacity_of({64: workers}, 128)
    grown, small = [
        RULE.credit(capacity, 2, None, shard_samples=samples, largest_samples=128) for samples in (128, 64)
    ]
    assert grown * 128 == small * 64


def test_runs_of_a_pool_share_its_workers() -> None:
    assert RULE.credit(capacity=1024, runs=4, samples_per_second=None) == 8


def test_fast_model_has_a_second_of_its_work_on_the_way() -> None:
    assert RULE.credit(capacity=64, runs=1, samples_per_second=6400.0) == 100


def test_ceiling_bounds_what_a_run_holds_of_the_stream() -> None:
    assert RULE.credit(capacity=10**6, runs=1, samples_per_second=None) == 256


def test_small_credit_is_used_at_once_and_a_large_one_in_quarters() -> None:
    assert [worth_sending(credit) for credit in (1, 4, 7, 8, 100)] == [1, 1, 1, 2, 25]
