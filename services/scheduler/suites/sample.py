"""A sample: one row as it is asked, with what is expected. Its digest names it across runs."""

import hashlib
from dataclasses import dataclass

DIGEST_FORMAT = "proctor-sample-1"


@dataclass(frozen=True, slots=True)
class Target:
    """The right answer: the index of a choice, or texts (any of them is right)."""

    choice: int | None = None
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """What the model is asked and what is expected. A choice holds its delimiter: it continues the prompt."""

    prompt: str
    choices: tuple[str, ...]
    target: Target


@dataclass(frozen=True, slots=True)
class Sample:
    """`position` and `doc_id` (the row in its split) count from 0; a `cluster` shares a passage."""

    position: int
    doc_id: int
    prompt: str
    choices: tuple[str, ...]
    target: Target
    digest: bytes
    cluster: str
    size_bytes: int


def encode_question(task: str, version: str, question: Question) -> bytes:
    """The canonical bytes that a digest is taken over.

    Each part is a netstring (`<length in bytes>:<UTF-8 bytes>`), in this order: the format's name, the task,
    its version, the prompt, the number of choices and each choice, the index of the right choice in decimal
    (empty without one), the number of accepted texts and each text. So no part can run into the next.
    """
    target = question.target
    right_choice = "" if target.choice is None else str(target.choice)
    parts = [DIGEST_FORMAT, task, version, question.prompt]
    parts += [
        str(len(question.choices)),
        *question.choices,
        right_choice,
        str(len(target.texts)),
        *target.texts,
    ]
    encoded = [part.encode() for part in parts]
    return b"".join([b"%d:%b" % (len(part), part) for part in encoded])


def digest_of(encoded_question: bytes) -> bytes:
    return hashlib.sha256(encoded_question).digest()
