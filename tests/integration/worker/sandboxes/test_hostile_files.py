"""Hostile output of a sandbox: it is bounded, it is read as values, and no path of it is followed."""

import io
import tarfile

import pytest

from services.common.sandboxes.errors import FilesRefused
from services.common.sandboxes.ports import Sandbox
from services.common.sandboxes.sandbox import Command, TarLimits
from services.common.sandboxes.tar_files import read_files


async def taken(sandbox: Sandbox, script: str, limits: TarLimits) -> dict[str, bytes]:
    made = await sandbox.run(Command(("python3", "-I", "-c", f"import os\nos.chdir('/work')\n{script}")))
    assert made.is_success, made.text
    with io.BytesIO() as into:
        await sandbox.get("/work", into, limits)
        return {file.name: file.content for file in read_files(into, "/work", limits)}


@pytest.mark.parametrize(
    "script",
    [
        "os.symlink('/etc/shadow', 'shadow')\nos.symlink('..', 'up')\nos.symlink('loop', 'loop')",
        "os.mkfifo('pipe')\nimport socket\nsocket.socket(socket.AF_UNIX).bind('socket')",
        "open('secret', 'w').write('x')\nos.chmod('secret', 0)",
    ],
    ids=["links", "pipes and sockets", "unreadable"],
)
async def test_only_plain_files_come_out(sandbox: Sandbox, script: str) -> None:
    read = await taken(sandbox, f"open('kept', 'w').write('kept')\n{script}", TarLimits())
    assert read == {"kept": b"kept"}


async def test_odd_names_are_values(sandbox: Sandbox) -> None:
    names = ["-rf", "a\nb", " ", "--checkpoint-action=exec=sh", "$(id)", "\u202etxt", "x" * 255]
    read = await taken(sandbox, f"for name in {names!r}: open(name, 'w').write(name)", TarLimits())
    assert read == {name: name.encode() for name in names}


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("open('large', 'wb').write(b'x' * (3 << 20))", "more than 1,000,000 bytes"),
        ("f = open('sparse', 'wb'); f.truncate(1 << 30)", "more than 1,000,000 bytes"),
        ("for n in range(600): open(str(n), 'w')", "more than 500"),
        ("for n in range(600): os.mkdir('d'); os.chdir('d')", "more than 500"),
    ],
    ids=["large", "sparse", "many", "deep"],
)
async def test_too_much_is_refused(sandbox: Sandbox, script: str, problem: str) -> None:
    with pytest.raises(FilesRefused, match=problem):
        await taken(sandbox, script, TarLimits(1_000_000, 500))


def a_tar(*members: tarfile.TarInfo) -> io.BytesIO:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as tar:
        for member in members:
            tar.addfile(member, io.BytesIO(b"x" * member.size))
    written.seek(0)
    return written


def named(name: str, kind: bytes = tarfile.REGTYPE) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.size = kind, 1 if kind == tarfile.REGTYPE else 0
    member.linkname = "/etc/shadow"
    return member


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/../../x", "x/.."])
def test_a_name_that_leaves_the_folder_is_refused(name: str) -> None:
    with pytest.raises(FilesRefused, match="leaves the folder"):
        list(read_files(a_tar(named(name)), "/work", TarLimits()))


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE]
)
def test_links_and_devices_of_a_tar_are_passed_over(kind: bytes) -> None:
    assert [
        file.name for file in read_files(a_tar(named("odd", kind), named("ok")), "/work", TarLimits())
    ] == ["ok"]


def test_a_header_of_two_gigabytes_is_not_read_whole() -> None:
    class Endless(io.RawIOBase):
        """A member whose extended header announces 2 GiB, which come."""

        given = 0

        def __init__(self) -> None:
            header = tarfile.TarInfo("x")
            header.type, header.size = tarfile.XHDTYPE, 2 << 30
            self._header = header.tobuf(tarfile.USTAR_FORMAT)

        def read(self, size: int = -1) -> bytes:
            part = self._header if not self.given else b"x" * (size if size > 0 else 1 << 30)
            self.given += len(part)
            return part[:size] if size > 0 else part

    endless = Endless()
    with pytest.raises(FilesRefused, match="more than 1,000,000 bytes"):
        list(read_files(endless, "/work", TarLimits(1_000_000, 10)))  # type: ignore[arg-type]  # reads suffice
    assert endless.given < 2_000_000


@pytest.mark.parametrize("content", [b"not a tar" * 200, b"\xff" * 1536, b""])
def test_what_is_no_tar_is_refused(content: bytes) -> None:
    with pytest.raises(FilesRefused, match="broken"):
        list(read_files(io.BytesIO(content), "/work", TarLimits()))
