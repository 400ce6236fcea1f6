"""What is said beside a comparison: noise of repetitions, and judges under other conditions."""

from typing import Any

import pytest

from proctor.v1 import answer_service_pb2 as answer_pb2
from proctor.v1 import comparison_pb2, leaderboard_service_pb2, run_pb2
from proctor.wire.comparison_notes import (
    judge_warnings,
    judged_sentence,
    judges_of_both,
    names_of_runs,
    noise_sentence,
)


def judged(model: str = "openai/judge", **judge: Any) -> run_pb2.Run:
    rollouts, state = judge.pop("rollouts", 1), judge.pop("state", run_pb2.RUN_STATE_COMPLETED)
    facts = {"prompt": "correctness", "version": "1", "digest": "ab" * 32, "scale": "yes-no", **judge}
    order = run_pb2.RunOrder(model=model, rollouts=rollouts, judge=run_pb2.Judge(**facts))
    return run_pb2.Run(order=order, state=state)


@pytest.mark.parametrize(
    "other",
    [
        [judged("openai/another")],
        [judged(version="2")],
        [judged(digest="cd" * 32)],
        [judged(scale="1-5")],
        [judged(rollouts=3)],
        [judged(), judged("openai/another")],
    ],
)
def test_judges_under_other_conditions_are_told_apart(other: list[run_pb2.Run]) -> None:
    [sentence] = judge_warnings(["a", "b"], [[judged()], other])
    assert "judged under other conditions" in sentence
    assert "a by" in sentence
    assert "b by" in sentence


@pytest.mark.parametrize(
    "other",
    [
        [judged()],
        [judged(), judged()],
        [],
        [judged("openai/another", against_run_id="x"), judged()],
        [judged("openai/another", state=run_pb2.RUN_STATE_FAILED)],
    ],
)
def test_judges_alike_or_none_are_no_warning(other: list[run_pb2.Run]) -> None:
    assert list(judge_warnings(["a", "b"], [[judged()], other])) == []


def test_noise_names_what_it_is_from() -> None:
    repeated = leaderboard_service_pb2.GetNoiseResponse(metric="acc", run_ids=["1", "2", "3"], rollouts=1)
    assert noise_sentence("a", repeated, "0.0230").endswith("as 3 runs tell.")
    rolled = leaderboard_service_pb2.GetNoiseResponse(metric="acc", run_ids=["1"], rollouts=4)
    assert noise_sentence("a", rolled, "0.0230").endswith("as 4 rollouts of one run tell.")


def test_judges_of_both_runs_are_paired_by_their_newest_runs() -> None:
    newest, older, other = judged(), judged(), judged("openai/another")
    newest.run_id, older.run_id = "newest", "older"
    pairs = judges_of_both([[newest, other, older], [judged(scale="1-5"), older]])
    assert [(first.run_id, second.run_id) for first, second in pairs] == [("newest", "older")]
    assert judges_of_both([[newest]] * 3) == []


def test_difference_by_a_judge_is_said_once_it_is_calibrated() -> None:
    assert judged_sentence(["a", "b"], judged(), answer_pb2.CalibratedDifference(remark="few")) == ""
    found = answer_pb2.CalibratedDifference(
        pairs=1200, difference=-0.03, ci_low=-0.05, ci_high=-0.01, p_value=0.0021
    )
    sentence = judged_sentence(["a", "b"], judged(), found)
    assert "openai/judge (correctness, yes-no)" in sentence
    assert "a minus b is -0.0300 (95 % from -0.0500 to -0.0100, p = 0.0021, 1,200 samples)." in sentence


def test_two_runs_of_one_model_are_told_apart() -> None:
    runs = [comparison_pb2.ComparedRun(run_id=f"{number}" * 36, model="openai/a") for number in (1, 2)]
    assert names_of_runs(runs) == ["openai/a (run 11111111)", "openai/a (run 22222222)"]
    runs[1].model = "openai/b"
    assert names_of_runs(runs) == ["openai/a", "openai/b"]
