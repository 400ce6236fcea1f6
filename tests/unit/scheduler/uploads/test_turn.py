"""The turn is handed to the thread that has waited longest."""

import os
from concurrent.futures import ThreadPoolExecutor

from services.scheduler.uploads.turn import Turn, pass_turn, without_turn


def test_thread_that_works_on_and_on_lets_each_of_the_others_work_in_between() -> None:
    turn, worked, threads, rounds = Turn(), [], 4, 50

    def work(name: int) -> None:
        with turn.held():
            for _ in range(rounds):
                worked.append(name)
                pass_turn()

    with ThreadPoolExecutor(threads) as pool, turn.held():
        working = [pool.submit(work, name) for name in range(threads)]
        while len(turn._waiting) < threads:
            os.sched_yield()
        with without_turn():
            for each in working:
                each.result(60)
    assert worked == worked[:threads] * rounds
    assert len(set(worked[:threads])) == threads


def test_nothing_is_passed_by_a_thread_that_holds_no_turn() -> None:
    pass_turn()
    with without_turn():
        pass
    turn = Turn()
    with turn.held():
        pass_turn()
    with turn.held():
        pass
