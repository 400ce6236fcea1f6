"""A worker has no more rollouts at a time than requests, and says so to the scheduler."""

import os

import pytest

from services.worker.rollouts.wiring import ROLLOUTS_PER_CORE, rollout_slots
from services.worker.settings import WorkerSettings


@pytest.mark.parametrize(
    ("setting", "concurrency", "slots"),
    [(0, 10_000, ROLLOUTS_PER_CORE * (os.cpu_count() or 1)), (64, 8, 8), (3, 8, 3)],
)
def test_slots_of_rollouts_are_within_the_concurrency_of_the_pool(
    setting: int, concurrency: int, slots: int
) -> None:
    assert rollout_slots(WorkerSettings(rollout_slots=setting), concurrency) == slots
