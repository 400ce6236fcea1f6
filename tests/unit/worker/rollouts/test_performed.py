"""The record of a rollout fits into a message, whatever an agent wrote."""

import json
from datetime import UTC, datetime

import pytest

from services.worker.rollouts.performed import AgentEnd, Performed
from services.worker.rollouts.transcript import Transcript
from services.worker.verification.verifier_result import VerifierResult

AT = datetime(2026, 1, 1, tzinfo=UTC)
LONGEST_TRANSCRIPT = 500_000


def trajectory_of(transcript: Transcript) -> dict[str, list[dict[str, object]]]:
    performed = Performed(AgentEnd.SUBMITTED, VerifierResult(1.0, ""), transcript, "", 1.0)
    trajectory: dict[str, list[dict[str, object]]] = json.loads(performed.record_json)["trajectory"]
    return trajectory


@pytest.mark.timeout(20)
@pytest.mark.parametrize("letter", ["x", "ж", "語", "\x01"])
def test_a_long_transcript_loses_the_texts_in_its_middle(letter: str) -> None:
    transcript = Transcript("session", "agent", "model")
    for _ in range(80):
        transcript.add("user", letter * 9000, AT)
        transcript.add_action("ls", letter * 9000)
    trajectory = trajectory_of(transcript)
    steps = trajectory["steps"]
    assert len(steps) == 80
    assert len(json.dumps(trajectory, ensure_ascii=False)) <= LONGEST_TRANSCRIPT
    assert len(str(steps[40]["message"])) < 300
    assert "observation" not in steps[40]
    if letter != "\x01":
        assert steps[0]["message"] == steps[-1]["message"] == letter * 9000
    # The transcript itself keeps all.
    assert all(len(str(step["message"])) == 9000 for step in transcript.steps)


def test_a_short_transcript_is_whole() -> None:
    transcript = Transcript("session", "agent", "model")
    transcript.add("user", "Do it.", AT)
    assert trajectory_of(transcript)["steps"] == transcript.steps
