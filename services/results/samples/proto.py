"""Converts samples from messages."""

from proctor.v1 import sample_pb2
from proctor.values.sample import ChatMessage, Prompt
from services.results.samples.sample import StoredSample
from services.results.scoring.score import ScoringTarget

_NOTHING_EXPECTED = ScoringTarget()


def sample_from_proto(message: sample_pb2.Sample) -> StoredSample:
    prompt = message.prompt
    turns = [ChatMessage(turn.role, turn.content, turn.fields_json) for turn in prompt.messages[:]]
    return StoredSample(
        position=message.position,
        doc_id=message.doc_id,
        digest=message.digest,
        prompt=Prompt(prompt.text if prompt.HasField("text") else None, tuple(turns)),
        target=_target(message),
        cluster=message.cluster,
        doc_json=message.doc_json,
        row_id=message.row_id,
        params_json=message.params_json,
        code_check=message.code_check.SerializeToString() if message.HasField("code_check") else b"",
        rollout_spec=message.rollout_spec,
    )


def _target(message: sample_pb2.Sample) -> ScoringTarget:
    """Most rows of a data set have no target; reading each empty list would double the cost."""
    # Slices: to iterate over a list of a message takes twice as long.
    choices = tuple(message.choices[:])
    if not choices and not message.HasField("target"):
        return _NOTHING_EXPECTED
    target = message.target
    return ScoringTarget(
        choices,
        target.choice if target.HasField("choice") else None,
        tuple(target.texts[:]),
        tuple(target.right_choices[:]),
        tuple(target.wrong_texts[:]),
        tuple(target.choice_texts[:]),
        message.choice_ending,
    )
