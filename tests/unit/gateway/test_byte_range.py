"""What a Range asks of a file of ten bytes."""

import pytest
from starlette.exceptions import HTTPException

from services.gateway.http_byte_range import ByteRange, byte_range


@pytest.mark.parametrize(
    ("header", "asked"),
    [
        ("bytes=0-", ByteRange(0, 10)),
        ("Bytes=0-0", ByteRange(0, 1)),
        ("bytes=2-4", ByteRange(2, 5)),
        ("bytes=9-", ByteRange(9, 10)),
        ("bytes=4-1000000000000000000", ByteRange(4, 10)),
        ("bytes=-3", ByteRange(7, 10)),
        ("bytes=-30", ByteRange(0, 10)),
        ("", None),
        ("bytes=-", None),
        ("bytes=5-2", None),
        ("bytes=0-0,2-3", None),
        ("bytes=a-b", None),
        ("bytes=1٣-", None),
        ("bytes=99999999999999999999-", None),
        ("rows=1-2", None),
    ],
)
def test_one_range_of_bytes_is_understood_and_else_all_is_meant(header: str, asked: ByteRange | None) -> None:
    assert byte_range(header, 10) == asked


@pytest.mark.parametrize(
    ("header", "size"), [("bytes=10-", 10), ("bytes=-0", 10), ("bytes=0-", 0), ("bytes=-1", 0)]
)
def test_range_that_a_file_does_not_have_is_416(header: str, size: int) -> None:
    with pytest.raises(HTTPException) as raised:
        byte_range(header, size)
    assert raised.value.status_code == 416
    assert raised.value.headers == {"Content-Range": f"bytes */{size}"}
