"""Sets of tasks may be hostile: no link is followed, nothing is unpacked, and all has a budget."""

import gzip
import io
import os
import tarfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from proctor.values.rollout import MAX_SET_BYTES
from services.scheduler.rollouts.tasks import file_task_sets
from services.scheduler.rollouts.tasks.errors import InvalidTask, NoTasks, UnsafeFolder
from services.scheduler.rollouts.tasks.file_task_sets import read_path
from services.scheduler.rollouts.tasks.task_folder import FileBudget
from tests.harness.rollout_tasks import harbor_folder, tb_meta_folder


def linked_file(folder: Path) -> None:
    (folder / "overlay_repo_files" / "passwd").symlink_to("/etc/passwd")


def linked_folder(folder: Path) -> None:
    (folder / "overlay_repo_files" / "etc").symlink_to("/etc")


def linked_config(folder: Path) -> None:
    (folder / "tb_meta.json").rename(folder.parent / "elsewhere.json")
    (folder / "tb_meta.json").symlink_to(folder.parent / "elsewhere.json")


def pipe(folder: Path) -> None:
    os.mkfifo(folder / "overlay_repo_files" / "pipe")


@pytest.mark.parametrize("spoil", [linked_file, linked_folder, linked_config, pipe])
def test_a_folder_with_a_link_or_a_pipe_is_refused_alone(
    tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    harbor_folder(tmp_path / "set" / "b")
    spoil(tb_meta_folder(tmp_path / "set" / "a"))
    archive = tmp_path / "set.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(tmp_path / "set", "set")
    for read in (read_path(tmp_path / "set"), read_path(archive)):
        assert [task.task_id for task in read.tasks] == ["b"]
        [fault] = read.faults
        assert (fault.folder, type(fault.error)) == ("a", InvalidTask)


def test_a_folder_with_too_many_bytes_is_refused(tmp_path: Path) -> None:
    folder = tb_meta_folder(tmp_path / "a")
    with (folder / "overlay_repo_files" / "sparse").open("wb") as file:
        file.truncate(MAX_SET_BYTES + 1)
    with pytest.raises(UnsafeFolder):
        read_path(folder).sound()


def test_a_folder_with_too_many_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tb_meta_folder(tmp_path / "a")
    files = sum(path.is_file() for path in folder.rglob("*"))
    monkeypatch.setattr(file_task_sets, "FileBudget", partial(FileBudget, files=files))
    assert read_path(folder).sound()
    (folder / "overlay_repo_files" / "one_more").touch()
    with pytest.raises(UnsafeFolder):
        read_path(folder).sound()


def member(name: str, kind: bytes = tarfile.REGTYPE, size: int = 0, target: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.size, made.linkname = kind, size, target
    return made


HOSTILE = {
    "a name that leaves": member("../../etc/cron.d/x"),
    "an absolute name": member("/etc/cron.d/x"),
    "more bytes than allowed": member("a", size=MAX_SET_BYTES + 1),
    "a name with a line break": member("a\nb"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_archive_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.tar.gz"
    with gzip.open(path, "wb") as file:
        file.write(HOSTILE[name].tobuf(tarfile.PAX_FORMAT))
        file.write(bytes(1024))
    with pytest.raises(UnsafeFolder):
        read_path(path).sound()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_what_is_no_file_of_an_archive_is_not_read(tmp_path: Path, kind: bytes) -> None:
    path = tmp_path / "a.tar.gz"
    with gzip.open(path, "wb") as file:
        file.write(member("task.toml", kind, target="/etc/passwd").tobuf(tarfile.PAX_FORMAT))
        file.write(bytes(1024))
    with pytest.raises(InvalidTask, match=r"task\.toml"):
        read_path(path).sound()


@pytest.mark.parametrize(
    "content",
    [b"", b"no gzip", gzip.compress(b"no tar" * 1000, mtime=0)[:-9]],
    ids=["empty", "no gzip", "cut off"],
)
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.tar.gz"
    path.write_bytes(content)
    with pytest.raises(UnsafeFolder):
        read_path(path).sound()


def test_an_archive_that_inflates_to_gigabytes_is_read_up_to_its_budget(tmp_path: Path) -> None:
    """A header of two gigabytes, which tarfile reads whole."""
    path = tmp_path / "a.tar.gz"
    header = member("x", tarfile.XHDTYPE, size=2 * 1024**3)
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(header.tobuf(tarfile.USTAR_FORMAT))
        for _ in range(150):
            file.write(bytes(1024**2))
    with pytest.raises(UnsafeFolder):
        read_path(path).sound()


def test_an_archive_without_a_member_has_no_task(tmp_path: Path) -> None:
    path = tmp_path / "a.tar.gz"
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w:gz"):
        pass
    path.write_bytes(written.getvalue())
    with pytest.raises(NoTasks) as refused:
        read_path(path).sound()
    assert refused.value.facts == {"path": "a"}


@pytest.mark.parametrize("lost", [4, 20])
def test_an_archive_without_its_checksum_is_refused(tmp_path: Path, lost: int) -> None:
    tb_meta_folder(tmp_path / "a")
    path = tmp_path / "a.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        tar.add(tmp_path / "a", "a")
    assert read_path(path).sound()
    path.write_bytes(path.read_bytes()[:-lost])
    with pytest.raises(UnsafeFolder, match="end is missing"):
        read_path(path).sound()


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("environment/Dockerfile", 'FROM a\nCOPY "a b'),
        ("environment/Dockerfile", 'FROM a\nENV A="b'),
        ("task.toml", "a = " + "[" * 10_000),
        ("task.toml", "a = " + "1" * 5000),
        ("task.toml", f'[environment]\nmemory = "{"9" * 400}G"'),
        ("task.toml", "[environment]\nmemory_mb = 1e300"),
    ],
)
def test_file_that_its_parser_chokes_on_is_named(tmp_path: Path, file: str, content: str) -> None:
    folder = tmp_path / "a"
    for name, text in {"task.toml": "", "instruction.md": "Do.", "tests/test.sh": "true"}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / file).parent.mkdir(exist_ok=True)
    (folder / file).write_text(content)
    with pytest.raises(InvalidTask):
        read_path(folder).sound()


def test_image_without_a_name_is_only_noted(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    files = {
        "task.toml": "",
        "instruction.md": "Do.",
        "tests/test.sh": "true",
        "environment/Dockerfile": "FROM",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    [task] = read_path(folder).sound()
    assert any("is not used" in note for note in task.notes)


def test_archive_of_nested_headers_is_refused(tmp_path: Path) -> None:
    """Each long name announces another one: tarfile reads them by recursion."""
    header = tarfile.TarInfo("././@LongLink")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 1
    one = header.tobuf(tarfile.GNU_FORMAT) + b"a".ljust(512, b"\0")
    path = tmp_path / "a.tar.gz"
    path.write_bytes(gzip.compress(one * 5000))
    with pytest.raises(UnsafeFolder):
        read_path(path).sound()
