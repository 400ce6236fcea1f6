"""The time of GPUs is divided among samples in flight, and no second is counted twice or lost."""

import random

from services.worker.consumer.gpu_time import GpuTime
from tests.fakes.scheduler.surroundings import SetClock


def test_samples_in_flight_share_the_gpus() -> None:
    clock = SetClock()
    time = GpuTime(clock, gpus=lambda: 2)
    time.change(1)
    clock.seconds += 10
    assert time.seconds_each == 20  # one sample alone has both GPUs
    time.change(4)
    clock.seconds += 10
    assert time.seconds_each == 20 + 5


def test_idle_gpus_are_nobodys() -> None:
    clock = SetClock()
    time = GpuTime(clock, gpus=lambda: 1)
    clock.seconds += 100
    time.change(1)
    clock.seconds += 1
    time.change(0)
    clock.seconds += 100
    assert time.seconds_each == 1


def test_shares_of_all_samples_add_up_to_the_time_in_which_any_was_in_flight() -> None:
    draw, clock = random.Random(1), SetClock()
    time = GpuTime(clock, gpus=lambda: 4)
    began: list[float] = []
    used = busy = 0.0
    for _ in range(2000):
        seconds = draw.random()
        busy += seconds if began else 0
        clock.seconds += seconds
        if began and draw.random() < 0.5:
            used += time.seconds_each - began.pop(draw.randrange(len(began)))
        else:
            began.append(time.seconds_each)
        time.change(len(began))
    used += sum(time.seconds_each - each for each in began)
    assert abs(used - 4 * busy) < 1e-6


def test_engine_without_gpus_uses_none() -> None:
    clock = SetClock()
    time = GpuTime(clock, gpus=lambda: 0)
    time.change(3)
    clock.seconds += 5
    assert time.seconds_each == 0
