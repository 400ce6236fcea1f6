"""When a refusal is one request's and when it is the whole run's."""

from datetime import UTC, datetime

from services.worker.execution.run_states import REFUSALS_IN_A_ROW, RefusedRuns
from tests.fakes.worker.held_message import a_shard

SHARD = a_shard(1)


class Clock:
    seconds = 0.0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return self.seconds


def test_first_refusal_of_a_run_without_an_answer_is_the_runs() -> None:
    refused = RefusedRuns(Clock())
    assert refused.on_refusal(SHARD, "wrong key")
    assert refused.reason(SHARD) == "wrong key"
    assert refused.reason(a_shard(1, epoch=2)) is None
    assert refused.reason(a_shard(1, run_id="run-2")) is None


def test_first_refusal_that_may_be_about_its_prompt_is_its_samples() -> None:
    refused = RefusedRuns(Clock())
    reported = [refused.on_refusal(SHARD, "forbidden", is_certain=False) for _ in range(REFUSALS_IN_A_ROW)]
    assert reported == [*[False] * (REFUSALS_IN_A_ROW - 1), True]


def test_stray_refusals_among_answers_are_their_samples() -> None:
    refused = RefusedRuns(Clock())
    for _ in range(3):
        refused.on_answer(SHARD)
        assert not any(refused.on_refusal(SHARD, "no") for _ in range(REFUSALS_IN_A_ROW - 1))
    assert refused.reasons == {}


def test_refusals_in_a_row_after_answers_are_the_runs() -> None:
    refused = RefusedRuns(Clock())
    refused.on_answer(SHARD)
    reported = [refused.on_refusal(SHARD, "no credit") for _ in range(REFUSALS_IN_A_ROW)]
    assert reported == [*[False] * (REFUSALS_IN_A_ROW - 1), True]


def test_answer_that_comes_after_all_takes_the_refusal_back() -> None:
    refused = RefusedRuns(Clock())
    refused.on_refusal(SHARD, "no")
    refused.on_answer(SHARD)
    assert refused.reasons == {}


def test_refusal_is_forgotten_after_a_while() -> None:
    clock = Clock()
    refused = RefusedRuns(clock, remembered_seconds=60)
    refused.on_refusal(SHARD, "no")
    clock.seconds = 59
    assert refused.reason(SHARD)
    clock.seconds = 60
    assert refused.reason(SHARD) is None


def test_what_is_kept_of_runs_is_bounded() -> None:
    refused = RefusedRuns(Clock())
    for number in range(3000):
        refused.on_answer(a_shard(1, run_id=f"run-{number}"))
    assert len(refused._since_answer) == 1024
