"""Samples and sample sets: prompts with the targets of their answers."""

from collections.abc import Sequence
from dataclasses import dataclass

from proctor.values.making.quickly_made import quickly_made
from proctor.values.sample import Prompt
from services.results.scoring.score import ScoringTarget


@quickly_made
@dataclass(frozen=True, slots=True)
class StoredSample:
    """`target` holds the choices too: together they are all that scoring needs.

    `doc_json` is the row it was made from; it is kept, and empty when samples are read to be sent. `row_id`
    and `params_json`, the row's own parameters as JSON object text, are those of a data set. `code_check` is
    the message by which a worker executes the answer, `rollout_spec` that by which an agent works on the
    sample; both are only stored and sent.
    """

    position: int
    doc_id: int
    digest: bytes
    prompt: Prompt
    target: ScoringTarget
    cluster: str = ""
    doc_json: str = ""
    row_id: str = ""
    params_json: str = ""
    code_check: bytes = b""
    rollout_spec: bytes = b""


@dataclass(frozen=True, slots=True)
class SampleSet:
    """A committed set; the same ordered digests and clusters are always the same set."""

    sample_set_id: str
    digest: bytes


def target_as_text(target: ScoringTarget, target_delimiter: str) -> str:
    """The target for a person or a table."""
    return " | ".join(targets_as_texts(target, target_delimiter))


def targets_as_texts(target: ScoringTarget, target_delimiter: str) -> Sequence[str]:
    """The answers any of which is right."""
    texts = target.texts_of_choices(target_delimiter)
    if target.choice is not None and 0 <= target.choice < len(texts):
        return [texts[target.choice]]
    if target.right_choices:
        return [texts[choice] for choice in target.right_choices if choice < len(texts)]
    return target.texts
