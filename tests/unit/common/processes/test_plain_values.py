"""Values that cross between processes: each comes back as its type declares, or not at all."""

import io
import math
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import pytest

from proctor.values.scoring import OutputType
from services.common.processes.frames import BrokenFrame, read_frame, write_frame
from services.common.processes.plain_values import UnexpectedValue, from_bytes, to_bytes


class Kind(StrEnum):
    A = "a"


@dataclass(frozen=True, slots=True)
class Inner:
    kind: Kind
    form: OutputType | None = None


@dataclass(frozen=True, slots=True)
class Outer:
    inner: tuple[Inner, ...]
    content: bytes
    number: float
    facts: Mapping[str, str | int | float] = field(default_factory=dict)


VALUE = Outer(
    (Inner(Kind.A), Inner(Kind.A, OutputType.GENERATE_UNTIL)), b"\x00\xff", 0.1, {"a": 2**63, "b": 1e300}
)


def test_dataclasses_and_enums_come_back_as_they_were() -> None:
    assert from_bytes(to_bytes(VALUE), Outer) == VALUE
    infinite = from_bytes(to_bytes((math.inf, math.nan)), tuple[float, float])
    assert infinite[0] == math.inf
    assert math.isnan(infinite[1])


def test_bytes_do_not_depend_on_the_version_of_python() -> None:
    assert to_bytes(Inner(Kind.A, OutputType.GENERATE_UNTIL)) == (
        b"\x82\xa4kind\xa1a\xa4form\xaegenerate_until"
    )


@pytest.mark.parametrize(
    "content",
    [
        b"",
        pickle.dumps(VALUE),
        to_bytes({"kind": "b"}),
        to_bytes({"form": "generate_until"}),
        to_bytes({"kind": "a", "form": 1}),
        to_bytes(["a"]),
        to_bytes({"kind": "a"})[:-1],
        to_bytes({"kind": "a"}) + b"\xc0",
        b"\x81\xa4kind\xa1\xff",
        b"\x91" * 100_000,
    ],
)
def test_what_is_no_value_of_the_type_is_not_read(content: bytes) -> None:
    with pytest.raises(UnexpectedValue):
        from_bytes(content, Inner)


def test_what_is_not_plain_is_not_written() -> None:
    with pytest.raises(TypeError):
        to_bytes(print)


def test_frames_come_in_their_order_and_end() -> None:
    stream = io.BytesIO()
    write_frame(stream, b"A", b"one", b"", b"two")
    write_frame(stream, b"B")
    stream.seek(0)
    assert [read_frame(stream) for _ in range(3)] == [(b"A", b"onetwo"), (b"B", b""), None]


@pytest.mark.parametrize("cut", [1, 8, 9, 11])
def test_frame_that_is_cut_off_or_too_long_is_broken(cut: int) -> None:
    stream = io.BytesIO()
    write_frame(stream, b"A", b"abc")
    with pytest.raises(BrokenFrame):
        read_frame(io.BytesIO(stream.getvalue()[:cut]))
    with pytest.raises(BrokenFrame, match="at most 2"):
        read_frame(io.BytesIO(stream.getvalue()), max_bytes=2)
