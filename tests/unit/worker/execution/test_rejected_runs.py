"""When a refusal is one request's and when it is the whole run's."""

from __future__ import annotations

from datetime import UTC, datetime

from services.worker.execution.run_states import REFUSALS_IN_A_ROW, RefusedRuns
from tests.fakes.held_shard import a_shard

SHARD = a_shard(1)


class Clock:
    seconds = 0.0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return self.seconds


def test_first_refusal_of_a_run_without_an_answer_is_the_runs() -> None:
    refused = RefusedRuns(Clock())
    assert refused.refuse(SHARD, "wrong key")
    assert refused.reason_for(SHARD) == "wrong key"
    assert refused.reason_for(a_shard(1, epoch=2)) is None
    assert refused.reason_for(a_shard(1, run_id="run-2")) is None


def test_first_refusal_that_may_be_about_its_prompt_is_its_samples() -> None:
    refused = RefusedRuns(Clock())
    told = [refused.refuse(SHARD, "forbidden", is_certain=False) for _ in range(REFUSALS_IN_A_ROW)]
    assert told == [*[False] * (REFUSALS_IN_A_ROW - 1), True]


def test_stray_refusals_among_answers_are_their_samples() -> None:
    refused = RefusedRuns(Clock())
    for _ in range(3):
        refused.answered(SHARD)
        assert not any(refused.refuse(SHARD, "no") for _ in range(REFUSALS_IN_A_ROW - 1))
    assert refused.reasons == {}


def test_refusals_in_a_row_after_answers_are_the_runs() -> None:
    refused = RefusedRuns(Clock())
    refused.answered(SHARD)
    told = [refused.refuse(SHARD, "no credit") for _ in range(REFUSALS_IN_A_ROW)]
    assert told == [*[False] * (REFUSALS_IN_A_ROW - 1), True]


def test_answer_that_comes_after_all_takes_the_refusal_back() -> None:
    refused = RefusedRuns(Clock())
    refused.refuse(SHARD, "no")
    refused.answered(SHARD)
    assert refused.reasons == {}


def test_refusal_is_forgotten_after_a_while() -> None:
    clock = Clock()
    refused = RefusedRuns(clock, remembered_seconds=60)
    refused.refuse(SHARD, "no")
    clock.seconds = 59
    assert refused.reason_for(SHARD)
    clock.seconds = 60
    assert refused.reason_for(SHARD) is None


def test_what_is_kept_of_runs_is_bounded() -> None:
    refused = RefusedRuns(Clock())
    for number in range(3000):
        refused.answered(a_shard(1, run_id=f"run-{number}"))
    assert len(refused._since_answer) == 1024
