"""A sample: one row as it is asked, with its target. Its digest identifies it across runs."""

import base64
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import orjson

from proctor.values.making.quickly_made import quickly_made
from proctor.values.sample import Sample, Target
from services.scheduler.suites.rows.row_source import SourceRow

DIGEST_FORMAT = "proctor-sample-1"
# A sample travels in one message: NATS takes 8 MiB here, gRPC 16.
MAX_SAMPLE_BYTES = 4 * 1024 * 1024
# The largest signed integer of 64 bits; orjson refuses what needs more.
_MAX_INTEGER = 2**63 - 1


@quickly_made
@dataclass(frozen=True, slots=True)
class RenderedRow:
    """A prompt and its target. A choice holds its delimiter: it continues the prompt.

    `choice_ending` as in `Sample`.
    """

    prompt: str
    choices: tuple[str, ...]
    target: Target
    choice_ending: str = ""


@quickly_made
@dataclass(frozen=True, slots=True)
class RenderedSample(Sample):
    """A sample with its size: of prompt, choices and target, and of all that results stores (the row too)."""

    size_bytes: int = 0
    stored_bytes: int = 0


def encode_row(task: str, version: str, rendered: RenderedRow) -> bytes:
    """Returns the canonical bytes whose SHA-256 is the sample's digest.

    Each part is a netstring (`<length in bytes>:<UTF-8 bytes>`), so boundaries are unambiguous: the format's
    name, the task, its version, the prompt, the number of choices, each choice, the index of the right
    choice (decimal, empty if none, comma-separated if several), the number of accepted texts, each text. If
    there are any, the number of wrong texts, each of them, and the text of each choice follow, and then the
    ending that all choices share, where only that is scored. Where the
    answer is executed, the program text before it, the part that is code and the time limit come last; where
    an agent works on it, the spec of its rollout.
    """
    target = rendered.target
    right_choice = "" if target.choice is None else str(target.choice)
    if target.right_choices:
        right_choice = ",".join(str(choice) for choice in target.right_choices)
    parts = [rendered.prompt, str(len(rendered.choices)), *rendered.choices, right_choice]
    parts += [str(len(target.texts)), *target.texts]
    if target.wrong_texts or target.choice_texts:
        parts += [str(len(target.wrong_texts)), *target.wrong_texts, *target.choice_texts]
    if rendered.choice_ending:
        parts.append(rendered.choice_ending)
    encoded = _encoded_head(task, version) + "".join([f"{len(part)}:{part}" for part in parts])
    # Such texts have as many bytes as characters.
    if encoded.isascii():
        return encoded.encode()
    return netstrings([part.encode() for part in (DIGEST_FORMAT, task, version, *parts)])


@lru_cache(maxsize=16)
def _encoded_head(task: str, version: str) -> str:
    """All rows of a task begin with it."""
    return "".join([f"{len(part)}:{part}" for part in (DIGEST_FORMAT, task, version)])


def netstrings(parts: Iterable[bytes]) -> bytes:
    return b"".join([b"%d:%b" % (len(part), part) for part in parts])


def digest_of(encoded_row: bytes) -> bytes:
    return hashlib.sha256(encoded_row).digest()


def row_as_json(row: SourceRow) -> bytes:
    """Encodes a row as JSON, fields in order. Raises `TypeError` if it is nested more than 250 levels deep.

    Values without a JSON form: numbers that are not finite become null, dates and times ISO text, bytes
    base64, integers over 64 bits text, lone surrogates a question mark, anything else `str(value)`.
    """
    try:
        return orjson.dumps(row)
    except TypeError:
        pass
    try:
        return orjson.dumps(_sayable(row), default=str)
    except RecursionError as error:
        raise TypeError("nested too deeply") from error


def _sayable(value: object) -> object:
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, int):
        return value if abs(value) <= _MAX_INTEGER else str(value)
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return {_sayable(str(key)): _sayable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_sayable(item) for item in value]
    return value
