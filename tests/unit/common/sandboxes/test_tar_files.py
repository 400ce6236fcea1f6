"""Names in a tar that hostile code wrote: text in any case, and different where the files are."""

import io

import pytest

from services.common.sandboxes.errors import FilesRefused
from services.common.sandboxes.sandbox import TarLimits
from services.common.sandboxes.tar_files import pack, read_files
from services.worker.rollouts.rollout_result import diff_of

ODD, ODDER = b"\xff".decode("utf-8", "surrogateescape"), b"\xfe".decode("utf-8", "surrogateescape")


def names_of(*names: str) -> list[str]:
    tar = pack(dict.fromkeys(names, b"x"))
    return [file.name for file in read_files(io.BytesIO(tar), "/work", TarLimits())]


def test_names_that_are_no_utf_8_are_text_and_stay_different() -> None:
    names = names_of("a", ODD, ODDER, f"folder/{ODD}", "\ufffd", "\ufffd~2")
    assert len(set(names)) == 6
    assert {"a", "folder/\ufffd"} <= set(names)
    for name in names:
        name.encode()


def test_the_difference_of_odd_names_can_be_stored() -> None:
    diff = diff_of(pack({}), pack({ODD: b"x\n"}), "/work")
    assert "+++ b/\ufffd" in diff
    diff.encode()


def test_headers_that_nest_without_end_are_a_broken_tar() -> None:
    header = pack({"name": b""})[:512]
    nested = bytearray(header)
    # A long name of the GNU format, whose member is again one.
    nested[156:157] = b"L"
    nested[148:156] = b" " * 8
    nested[148:156] = b"%06o\0 " % sum(nested)
    with pytest.raises(FilesRefused):
        list(read_files(io.BytesIO(bytes(nested) * 5000), "/work", TarLimits()))
