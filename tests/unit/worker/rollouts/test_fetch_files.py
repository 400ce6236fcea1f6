"""Files of tasks: fetched in parts, once for all rollouts at a time, believed by digest, kept on disk."""

import asyncio
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from proctor.values.rollout import Bundle, BundleKind, RolloutSpec, RolloutTask, VerifierKind
from services.worker.rollouts.errors import FilesNotFetched
from services.worker.rollouts.task_files.fetch_files import FetchFiles
from services.worker.rollouts.task_files.file_cache import FileBundleCache

PART = 1000
CONTENT = os.urandom(3 * PART + 7)


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def rollout_spec(*bundles: Bundle) -> RolloutSpec:
    return RolloutSpec(RolloutTask("a", "Mend it.", VerifierKind.REWARD_FILE, bundles=bundles))


def bundle(content: bytes, kind: BundleKind = BundleKind.TESTS, size: int | None = None) -> Bundle:
    return Bundle(kind, digest_of(content), len(content) if size is None else size)


@dataclass
class Source:
    """Gives other bytes for a digest where `stored` says so."""

    stored: Mapping[str, bytes]
    asked: list[int] = field(default_factory=list)

    async def part(self, digest: str, first_byte: int) -> bytes:
        self.asked.append(first_byte)
        await asyncio.sleep(0)
        return self.stored[digest][first_byte : first_byte + PART]


async def test_files_are_fetched_in_parts_and_kept(tmp_path: Path) -> None:
    source = Source({digest_of(CONTENT): CONTENT})
    fetching = FetchFiles(source, FileBundleCache(tmp_path / "cache", 10_000))
    wanted = rollout_spec(bundle(CONTENT))
    fetched = await asyncio.gather(*(fetching.fetch(wanted) for _ in range(3)))
    assert {each.task.tests for each in fetched} == {CONTENT}
    assert source.asked == [0, 1000, 2000, 3000]
    later = FetchFiles(Source({}), FileBundleCache(tmp_path / "cache", 10_000))
    assert (await later.fetch(wanted)).task.tests == CONTENT
    assert fetching.locks._locks == {}  # no lock stays behind


@pytest.mark.parametrize(
    ("stored", "size"), [(CONTENT[:-1] + b"x", None), (CONTENT, 10), (CONTENT, 10_000), (CONTENT, 10**12)]
)
async def test_files_that_are_not_those_of_the_task_are_refused(
    tmp_path: Path, stored: bytes, size: int | None
) -> None:
    fetching = FetchFiles(Source({digest_of(CONTENT): stored}), FileBundleCache(tmp_path, 10_000))
    with pytest.raises(FilesNotFetched, match="files of the task cannot be fetched"):
        await fetching.fetch(rollout_spec(bundle(CONTENT, size=size)))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.timeout(20)
async def test_folder_that_others_can_read_is_not_looked_into(tmp_path: Path) -> None:
    """What another account put there need not be a file."""
    os.mkfifo(tmp_path / digest_of(CONTENT))
    tmp_path.chmod(0o755)
    fetching = FetchFiles(Source({digest_of(CONTENT): CONTENT}), FileBundleCache(tmp_path, 10_000))
    assert (await fetching.fetch(rollout_spec(bundle(CONTENT)))).task.tests == CONTENT


async def test_a_task_with_its_own_files_is_left_as_it_is(tmp_path: Path) -> None:
    task = RolloutTask("a", "Mend it.", VerifierKind.REWARD_FILE, workspace=b"files")
    fetching = FetchFiles(Source({}), FileBundleCache(tmp_path, 0))
    assert (await fetching.fetch(RolloutSpec(task))).task.workspace == b"files"


def test_the_cache_keeps_what_was_used_last_within_its_bytes(tmp_path: Path) -> None:
    cache = FileBundleCache(tmp_path / "cache", 250)
    contents = [bytes([number]) * 100 for number in range(3)]
    for age, content in zip((30, 20), contents, strict=False):
        cache.put(digest_of(content), content)
        os.utime(tmp_path / "cache" / digest_of(content), (age, age))
    assert cache.get(digest_of(contents[0])) == contents[0]
    cache.put(digest_of(contents[2]), contents[2])
    found = [cache.get(digest_of(content)) is not None for content in contents]
    assert found == [True, False, True]
    assert sum(file.stat().st_size for file in (tmp_path / "cache").iterdir()) <= 250


def test_spoilt_files_in_the_cache_are_deleted_and_not_used(tmp_path: Path) -> None:
    cache = FileBundleCache(tmp_path / "cache", 1000)
    cache.put(digest_of(b"right"), b"right")
    (tmp_path / "cache" / digest_of(b"right")).write_bytes(b"wrong")
    assert cache.get(digest_of(b"right")) is None
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_folder_that_others_may_read_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o755)
    FileBundleCache(tmp_path / "cache", 1000).put(digest_of(b"right"), b"right")
    assert list((tmp_path / "cache").iterdir()) == []
