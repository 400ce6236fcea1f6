"""Which state may follow which."""

from itertools import product

import pytest

from services.scheduler.errors import RunAlreadyFinished
from services.scheduler.runs.run import FINAL_STATES, RunState, may_become, states_before
from tests.fakes.scheduler_stand import SchedulerStand


def test_nothing_follows_completed() -> None:
    assert not any(may_become(RunState.COMPLETED, state) for state in RunState)


def test_only_a_retry_leaves_a_final_state() -> None:
    ways = [(a, b) for a, b in product(FINAL_STATES, RunState) if may_become(a, b)]
    assert sorted(ways) == [
        (RunState.CANCELLED, RunState.PENDING),
        (RunState.FAILED, RunState.PENDING),
    ]


def test_states_before_are_those_that_may_become_it() -> None:
    assert set(states_before(RunState.CANCELLED)) == {RunState.PENDING, RunState.RUNNING, RunState.PAUSED}
    assert set(states_before(RunState.COMPLETED)) == {RunState.RUNNING}


async def test_finished_run_cannot_be_cancelled() -> None:
    stand = SchedulerStand()
    run, driver = await stand.start()
    await stand.finish(run.run_id, driver)
    with pytest.raises(RunAlreadyFinished, match="is already completed"):
        await stand.cancelling.cancel(run.run_id)
