"""A file is there whole or not at all, and never in the place of another unless forced."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from proctor.cli.results.export import write_file
from proctor.client.errors import Refused, Unreachable


async def pieces(*texts: bytes, then: Exception | None = None) -> AsyncIterator[bytes]:
    for text in texts:
        yield text
    if then:
        raise then


async def test_pieces_become_a_file(tmp_path: Path) -> None:
    assert await write_file(tmp_path / "run.csv", pieces(b"a\n", b"b\n"), is_forced=False) == 4
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"run.csv": b"a\nb\n"}


async def test_nothing_is_left_of_a_file_that_breaks_off(tmp_path: Path) -> None:
    with pytest.raises(Unreachable):
        await write_file(tmp_path / "run.csv", pieces(b"a\n", then=Unreachable("gone")), is_forced=False)
    assert list(tmp_path.iterdir()) == []


async def test_file_that_breaks_off_leaves_the_one_it_was_to_replace(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    path.write_bytes(b"old")
    with pytest.raises(Unreachable):
        await write_file(path, pieces(b"a\n", then=Unreachable("gone")), is_forced=True)
    assert [each.read_bytes() for each in tmp_path.iterdir()] == [b"old"]
    await write_file(path, pieces(b"new"), is_forced=True)
    assert path.read_bytes() == b"new"


async def test_existing_file_is_kept_unless_forced(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    path.write_bytes(b"old")
    with pytest.raises(Refused, match="--force replaces it"):
        await write_file(path, pieces(b"new"), is_forced=False)
    assert path.read_bytes() == b"old"


async def test_file_that_came_to_be_in_between_is_kept_as_well(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"

    async def slow() -> AsyncIterator[bytes]:
        yield b"new"
        path.write_bytes(b"theirs")

    with pytest.raises(Refused):
        await write_file(path, slow(), is_forced=False)
    assert [each.read_bytes() for each in tmp_path.iterdir()] == [b"theirs"]


async def test_file_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="cannot be written: No such file"):
        await write_file(tmp_path / "nowhere" / "run.csv", pieces(b"a"), is_forced=False)
    with pytest.raises(Refused, match="is a folder"):
        await write_file(tmp_path, pieces(b"a"), is_forced=True)
